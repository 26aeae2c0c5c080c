import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeClient } from '../../kube/kube-client.ts';
import { type OpenKubeClient, openKubeClient } from '../../kube/open-client.ts';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type Door, openDoor } from '../system/door.ts';
import { createVpcCloud, POD_SUBNET, type PodSubnet, type VpcCloud, ZONE } from '../system/vpc-cloud.ts';
import { ClusterNode } from './cluster-node.ts';
import {
  API_PORT,
  apiServerArgv,
  type ControlPlaneFacts,
  controllerManagerArgv,
  etcdArgv,
  type Flags,
  SERVICE_CIDR,
  schedulerArgv,
} from './control-plane.ts';
import { Daemon } from './daemon.ts';
import { type Deployed, type DeploySpec, deploy } from './deploy.ts';
import { ADMIN_USER, type Identities, KUBE_PROXY_USER, makeIdentities, nodeUser } from './identities.ts';
import { describeMissing, findKubeAssets } from './kube-assets.ts';
import { Kubectl } from './kubectl.ts';
import type { ExternalKubelet } from './kubelet-config.ts';
import { Machine } from './machine.ts';
import { openRelay, type Relay } from './relay.ts';
import { replaceNetwork } from './replace-network.ts';
import { writeSmallImages } from './small-images.ts';
import { CLUSTER_STEM, clusterDir, removeStaleClusters } from './stale-clusters.ts';

/** A node of a real cluster. */
type RealNodeSpec = {
  readonly name: string;
  /** Cores of its instance in the cloud, which set how many ENIs and addresses it may have; default 4. */
  readonly cores?: number;
  /** Zone of its instance; default that of everything. */
  readonly zone?: string;
  /** Default `at-once`; `later`: with `join`. */
  readonly joins?: 'at-once' | 'later';
  /** Default 110. */
  readonly maxPods?: number;
  /** Default `none`: no plugin and no configuration. `ptp`: Debian's ptp and host-local, for comparisons without ours. */
  readonly cni?: 'none' | 'ptp';
  /** Default true: registers with the taint `tke.cloud.tencent.com/eni-ip-unavailable`, as nodes of TKE do. */
  readonly hasEniIpTaint?: boolean;
  /** Its kubelet waits for a cloud controller manager; default: it knows all of its node, as nodes of TKE do. */
  readonly external?: ExternalKubelet;
  /** Fields of the kubelet's configuration that win over ours. */
  readonly kubelet?: Readonly<Record<string, unknown>>;
};

/** What a real cluster consists of. */
type RealClusterSpec = {
  /** Default: `node1` and `node2`. */
  readonly nodes?: readonly RealNodeSpec[];
  /** Subnets for Pods; default one of 253 addresses. */
  readonly subnets?: readonly PodSubnet[];
  /** Folder with the executables of Kubernetes; default `KUBE_ASSETS`, or where a release is usually unpacked. */
  readonly assets?: string;
  /** Addresses of Services, a network whose last number is 0; default 10.96.0.0/16. */
  readonly serviceCidr?: string;
  /** ENIs in the VPC, primary ones not counted. */
  readonly vpcEnis?: number;
  /** How long tasks of the cloud last, milliseconds; default 20 to 80. */
  readonly taskMs?: readonly [number, number];
  /** Flags of the control plane's daemons that win over ours. */
  readonly apiServerFlags?: Flags;
  readonly controllerManagerFlags?: Flags;
  readonly schedulerFlags?: Flags;
  /** Flags of every node's kube-proxy that win over ours. */
  readonly kubeProxyFlags?: Flags;
};

const CLOUD_PORT = 8_443;
/** Name of the control plane in the VPC. */
export const CONTROL_PLANE = 'cp';

/**
 * Starts a real cluster: etcd and the control plane in one network namespace of a small VPC, each node in another, with
 * a mount and a PID namespace of its own; the cloud is served by this process. Resolves when all nodes have registered;
 * they are not Ready while nothing brings a network (`deploy` does). The caller closes it; nothing is left when it fails.
 * @throws Error naming the executables of Kubernetes that are missing
 */
export async function startRealCluster(spec: RealClusterSpec = {}): Promise<RealCluster> {
  const assets = findKubeAssets(spec.assets);
  if (assets.missing.length > 0) throw new Error(describeMissing(assets));
  await removeStaleClusters();
  const nodes = spec.nodes ?? [{ name: 'node1' }, { name: 'node2' }];
  const { vpcEnis, taskMs } = spec;
  const cloud = await createVpcCloud({
    prefix: CLUSTER_STEM,
    nodes: [{ name: CONTROL_PLANE }, ...nodes].map(({ name, cores = 4, zone }: RealNodeSpec) => ({
      name,
      cores,
      ...(zone === undefined ? {} : { zone }),
    })),
    subnets: spec.subnets ?? [POD_SUBNET],
    ...(vpcEnis === undefined ? {} : { vpcEnis }),
    ...(taskMs === undefined ? {} : { taskMs }),
  });
  const cluster = new RealCluster(spec, cloud, assets.dir);
  try {
    await cluster.start(nodes);
  } catch (error) {
    const logs = cluster.logs();
    await cluster.close();
    throw new Error(`${cluster.dir}: the cluster did not come up: ${String(error)}\n${logs}`, { cause: error });
  }
  return cluster;
}

/** A running cluster of real Kubernetes components. Made by `startRealCluster`. */
export class RealCluster extends Kubectl {
  readonly cloud: VpcCloud;
  readonly nodes: ClusterNode[] = [];
  readonly etcd: Daemon;
  readonly apiServer: Daemon;
  readonly controllerManager: Daemon;
  readonly scheduler: Daemon;
  /** Where the control plane runs. */
  readonly controlPlane: Machine;
  /** Doors of the nodes to the cloud's API, by the node's name: to be cut and healed. */
  readonly cloudDoors = new Map<string, Door>();
  #admin: OpenKubeClient | undefined;
  #relay: Relay | undefined;
  #identities: Identities | undefined;
  #smallImages: readonly string[] = [];
  #specs = new Map<string, RealNodeSpec & { readonly index: number }>();
  #spec: RealClusterSpec;

  constructor(spec: RealClusterSpec, cloud: VpcCloud, assets: string) {
    super(assets, clusterDir(cloud.vpc.prefix));
    this.cloud = cloud;
    this.#spec = spec;
    const { netns } = cloud.vpc.node(CONTROL_PLANE);
    this.controlPlane = new Machine({ name: CONTROL_PLANE, netns, mounts: [] });
    this.etcd = this.#daemon('etcd', etcdArgv);
    this.apiServer = this.#daemon('kube-apiserver', (facts) => apiServerArgv(facts, spec.apiServerFlags ?? {}));
    this.controllerManager = this.#daemon('kube-controller-manager', (facts) =>
      controllerManagerArgv(facts, spec.controllerManagerFlags ?? {}),
    );
    this.scheduler = this.#daemon('kube-scheduler', (facts) => schedulerArgv(facts, spec.schedulerFlags ?? {}));
  }

  /** Starts everything. Called once, by `startRealCluster`. */
  async start(nodes: readonly RealNodeSpec[]): Promise<void> {
    mkdirSync(this.dir, { mode: 0o700 });
    const { primaryIp } = this.cloud.vpc.node(CONTROL_PLANE).primary;
    const { serviceCidr = SERVICE_CIDR } = this.#spec;
    const place = { assets: this.assets, dir: this.dir, ip: primaryIp, serviceCidr };
    this.#identities = await makeIdentities(
      place,
      nodes.map(({ name }) => name),
    );
    for (const [index, node] of nodes.entries()) this.#specs.set(node.name, { ...node, index });
    const first = nodes.filter(({ joins }) => joins !== 'later').map(({ name }) => this.#addNode(name));
    this.#smallImages = writeSmallImages(this.dir);
    await endedAll([this.#startControlPlane(), ...first.map((node) => node.install(this.#smallImages))]);
    for (const node of first) node.startKubelet();
    const names = first.map(({ name }) => `node/${name}`);
    await this.awaitKubectl(['get', ...names, 'serviceaccount/default'], 'registration of the nodes');
  }

  /** Lets a node join that was to join later: resolves when it has registered. @throws Error for a name not in the spec */
  async join(name: string): Promise<ClusterNode> {
    const node = this.#addNode(name);
    await node.install(this.#smallImages);
    node.startKubelet();
    await this.awaitKubectl(['get', `node/${name}`], `registration of ${name}`);
    return node;
  }

  /**
   * Terminates a node's instance as a person or a scale-down does: the machine is gone at once, its ENIs are free, and the
   * Node object is deleted, as the cloud controller manager does. `nodes` still names it.
   */
  async terminate(name: string): Promise<void> {
    await this.terminateInstance(name);
    await this.kubectl('delete', 'node', name, '--wait=false');
  }

  /** As `terminate`, but the Node object stays for whoever deletes it. */
  async terminateInstance(name: string): Promise<void> {
    const { host, instanceOf } = this.cloud;
    await this.node(name).powerOff();
    // The cloud unplugs its ENIs.
    host.model.state.removeInstance(instanceOf(name));
    await host.catchUp();
  }

  /** Brings this project into the cluster: its images, its manifests; waits until Pods can get addresses. */
  async deploy(spec: DeploySpec = {}): Promise<Deployed> {
    return deploy(this, spec);
  }

  /** The API server with every right. @throws Error before the cluster has started */
  get admin(): KubeClient {
    if (this.#admin === undefined) throw new Error('the cluster has not started');
    return this.#admin;
  }

  /** The node of that name. @throws Error when there is none */
  node(name: string): ClusterNode {
    const found = this.nodes.find((node) => node.name === name);
    if (found === undefined) throw new Error(`${name}: no such node in this cluster`);
    return found;
  }

  /** Waits until the API server answers that it is ready: after `apiServer.start()` or `etcd.start()`. */
  async awaitApiServer(timeoutMs = 60_000): Promise<void> {
    await waitUntil(
      async () => {
        const { code } = await this.tryKubectl(['get', '--raw', '/readyz']);
        // It ends by itself when it does not understand a flag, or finds no etcd for long.
        if (!this.apiServer.isRunning) throw new Error(`kube-apiserver ended: ${this.apiServer.logs().slice(-2_000)}`);
        return code === 0;
      },
      { what: 'kube-apiserver', timeoutMs, everyMs: 100, explain: () => this.logs() },
    );
  }

  /** Waits until nodes are Ready; by default all of them. */
  async awaitReady(names = this.nodes.map(({ name }) => name), timeoutMs = 60_000): Promise<void> {
    const nodes = names.map((name) => `node/${name}`);
    const args = ['wait', '--for=condition=Ready', `--timeout=${timeoutMs}ms`, ...nodes];
    const answer = await this.tryKubectl(args, { timeoutMs: timeoutMs + 10_000 });
    if (answer.code !== 0) throw new Error(`${names.join(', ')}: not Ready: ${answer.stderr}\n${this.logs()}`);
  }

  /** The records of the API server's audit log so far, one for each request that was answered. */
  auditLog(): readonly Readonly<Record<string, unknown>>[] {
    const lines = readFileSync(join(this.dir, 'audit.log'), 'utf8').split('\n');
    // The last one may be half written.
    return lines.slice(0, -1).map((line): Readonly<Record<string, unknown>> => JSON.parse(line));
  }

  /** The ends of all daemons' logs. */
  logs(): string {
    const daemons = [this.etcd, this.apiServer, this.controllerManager, this.scheduler];
    const ofControlPlane = daemons.map((daemon) => `== ${daemon.name}\n${daemon.logs().slice(-2_000)}`);
    return [...ofControlPlane, ...this.nodes.map((node) => node.logs())].join('\n');
  }

  /** Ends every process and removes namespaces, cgroups and files. Idempotent, also after a failed start. */
  async close(): Promise<void> {
    this.#admin?.close();
    await Promise.all([this.controlPlane.halt(), ...this.nodes.map((node) => node.close())]);
    await this.#relay?.close();
    for (const door of this.cloudDoors.values()) door.close();
    rmSync(this.dir, { recursive: true, force: true });
    await this.cloud.close();
  }

  async #startControlPlane(): Promise<void> {
    await this.controlPlane.boot();
    this.etcd.start();
    this.apiServer.start();
    this.#relay = await openRelay(this.controlPlane.netns);
    writeFileSync(this.kubeconfig, this.#known.kubeconfigOf(ADMIN_USER, this.#relay.url), { mode: 0o600 });
    this.#admin = openKubeClient({
      kubeconfig: this.kubeconfig,
      env: {},
      qps: 500,
      burst: 1_000,
      userAgent: 'cluster-test',
      clock: systemClock,
      log: silentLogger,
    });
    await this.awaitApiServer();
    this.controllerManager.start();
    this.scheduler.start();
  }

  #addNode(name: string): ClusterNode {
    const spec = this.#specs.get(name);
    if (spec === undefined || this.nodes.some((node) => node.name === name))
      throw new Error(`${name}: ${spec === undefined ? 'not in the spec of this cluster' : 'has joined already'}`);
    const node = this.#makeNode(spec);
    this.nodes.push(node);
    return node;
  }

  #makeNode(spec: RealNodeSpec & { readonly index: number }): ClusterNode {
    const { cloud } = this;
    const { netns, primary } = cloud.vpc.node(spec.name);
    const dir = join(this.dir, spec.name);
    mkdirSync(dir);
    this.#openCloudDoor(spec.name);
    const url = `https://${cloud.vpc.node(CONTROL_PLANE).primary.primaryIp}:${API_PORT}`;
    return new ClusterNode({
      netns,
      dir,
      kubeAssets: this.assets,
      facts: {
        name: spec.name,
        instanceId: cloud.instanceOf(spec.name),
        zone: spec.zone ?? ZONE,
        ip: primary.primaryIp,
        cores: spec.cores ?? 4,
        maxPods: spec.maxPods ?? 110,
        hasEniIpTaint: spec.hasEniIpTaint ?? spec.cni !== 'ptp',
        ...(spec.external === undefined ? {} : { external: spec.external }),
        more: spec.kubelet ?? {},
      },
      kubeletClientCa: this.#known.kubeletClientCa,
      kubeconfigs: {
        kubelet: this.#known.kubeconfigOf(nodeUser(spec.name), url),
        kubeProxy: this.#known.kubeconfigOf(KUBE_PROXY_USER, url),
      },
      kubeProxyFlags: this.#spec.kubeProxyFlags ?? {},
      ...(spec.cni === 'ptp' ? { podCidr: `10.200.${spec.index}.0/24` } : {}),
      renewNetwork: async () => {
        this.cloudDoors.get(spec.name)?.close();
        await replaceNetwork(cloud.vpc, spec.name);
        this.#openCloudDoor(spec.name);
      },
    });
  }

  #openCloudDoor(node: string): void {
    const { vpc, server } = this.cloud;
    this.cloudDoors.set(
      node,
      openDoor(vpc.node(node).netns, CLOUD_PORT, (socket) => server.accept(socket)),
    );
  }

  get #known(): Identities {
    if (this.#identities === undefined) throw new Error('the cluster has no certificates yet');
    return this.#identities;
  }

  #daemon(name: string, argv: (facts: ControlPlaneFacts) => readonly string[]): Daemon {
    const logPath = join(this.dir, `${name}.log`);
    return new Daemon({ name, machine: this.controlPlane, argv: () => argv(this.#known.facts), logPath });
  }
}

/** Waits until all have ended, also when one fails: what still starts would make again what the caller takes down. @throws the first failure */
async function endedAll(parts: readonly Promise<unknown>[]): Promise<void> {
  const outcomes = await Promise.allSettled(parts);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}
