import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { CONFIG_MAPS, NODE_ENI_CONFIGS, NODES } from '../../kube/resource-types.ts';
import { installKinds } from '../../sim/kube-api/install-kinds.ts';
import { buildExecutables } from '../../tools/build.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type Cluster, type NodeFacts, startCluster } from './cluster.ts';
import { openDoor } from './door.ts';
import { IpamdProcess } from './ipamd-process.ts';
import type { SystemMember, SystemMemberParts } from './system-member.ts';
import { makeSystemNode, type SystemNode } from './system-node.ts';
import { createVpcCloud, POD_SUBNET, type PodSubnet, type VpcCloud, ZONE } from './vpc-cloud.ts';

/** What a whole system consists of. */
type SystemSpec = {
  readonly nodes: readonly { readonly name: string; readonly cores?: number; readonly zone?: string }[];
  /** Default: one of 253 addresses. */
  readonly subnets?: readonly PodSubnet[];
  /** Start of every name on this machine; default 'tke-test-'. */
  readonly prefix?: string;
  readonly vpcEnis?: number;
  readonly taskMs?: readonly [number, number];
  /** Replicas of ipamd; default 2. */
  readonly ipamds?: number;
  /** Default 'packaged'. */
  readonly ipamdProgram?: 'packaged' | 'sources';
  readonly ipamdFlags?: Readonly<Record<string, string>>;
  readonly agentFlags?: Readonly<Record<string, string | boolean>>;
  /** Default true: every node joins at once. Otherwise `join` is called for each. */
  readonly joinsAll?: boolean;
};

/** A NodeENIConfig as tests read it: what the store has, not what our decoder makes of it. */
export type SeenNec = KubeObject & {
  readonly spec?: NodeEniConfigSpec;
  readonly status?: NodeEniConfigStatus;
};

const KUBE_PORT = 6_443;
const CLOUD_PORT = 8_443;

/**
 * Brings up cloud, API server, ipamd and nodes with their agents: real processes in network namespaces, each with a
 * loopback that leads to the servers of this process. The caller closes it.
 */
export function createSystem(spec: SystemSpec): Promise<System> {
  return createSystemOf(spec, { makeNode: makeSystemNode });
}

/** How the nodes of a system come about. */
type MemberSpec<N extends SystemMember> = {
  readonly makeNode: (parts: SystemMemberParts) => Promise<N>;
  /** Told of the system before it is up: whoever is interrupted meanwhile can close it. */
  readonly onMade?: (system: System<N>) => void;
};

/** Brings up a system like `createSystem` does, of nodes that are made otherwise. The caller closes it. */
export async function createSystemOf<N extends SystemMember>(
  spec: SystemSpec,
  { makeNode, onMade }: MemberSpec<N>,
): Promise<System<N>> {
  const isPackaged = spec.ipamdProgram !== 'sources';
  await buildExecutables(['tke-route-eni', 'tke-eni-agent', ...(isPackaged ? (['tke-eni-ipamd'] as const) : [])]);
  const subnets = spec.subnets ?? [POD_SUBNET];
  const nodes = spec.nodes.map(({ name, cores = 4, zone = ZONE }) => ({ name, cores, zone }));
  const { prefix, vpcEnis, taskMs } = spec;
  const cloud = await createVpcCloud({
    nodes,
    subnets,
    ...(prefix === undefined ? {} : { prefix }),
    ...(vpcEnis === undefined ? {} : { vpcEnis }),
    ...(taskMs === undefined ? {} : { taskMs }),
  });
  const dir = filesOf(cloud.vpc.prefix);
  mkdirSync(dir);
  const cluster = await startCluster({
    TKE_ENI_IPAMD_SUBNET_ID: subnets.map(({ subnetId }) => subnetId).join(':'),
    TKE_ENI_IPAMD_VPC_ID: cloud.vpcId,
  });
  const system = new System(spec, { cloud, cluster, dir, makeNode });
  onMade?.(system);
  try {
    await system.start();
    return system;
  } catch (error) {
    const logs = system.logs();
    await system.close();
    throw new Error(`the system did not come up: ${logs.slice(-4_000)}`, { cause: error });
  }
}

/** Where a system keeps its files: told by any name that begins with its prefix, so that a later run finds them. */
export function filesOf(name: string): string {
  return join(tmpdir(), name.split('-').slice(0, 3).join('-'));
}

/** What a Node carries from the start. */
type NodeMarks = Pick<NodeFacts, 'annotations' | 'labels'>;

type Parts<N extends SystemMember> = Pick<MemberSpec<N>, 'makeNode'> & {
  readonly cloud: VpcCloud;
  readonly cluster: Cluster;
  readonly dir: string;
};

/** Addresses that a node has to give: assigned, on attached ENIs. */
export function assignedIps(nec: SeenNec): readonly string[] {
  const infos = (nec.status?.eniInfos ?? []).filter((info) => info.state === 'Attached');
  const addresses = infos.flatMap((info) => info.addresses ?? []);
  return addresses.filter(({ state }) => state === 'Assigned').map(({ ip }) => ip);
}

/** How many there are. */
export function countAssigned(nec: SeenNec): number {
  return assignedIps(nec).length;
}

/** A running system. Made by `createSystem`. */
export class System<N extends SystemMember = SystemNode> {
  readonly cloud: VpcCloud;
  readonly cluster: Cluster;
  readonly nodes: N[] = [];
  readonly ipamds: IpamdProcess[] = [];
  #spec: SystemSpec;
  #dir: string;
  #makeNode: MemberSpec<N>['makeNode'];
  #doors: (() => void)[] = [];
  #tokens: (() => void)[] = [];

  constructor(spec: SystemSpec, { cloud, cluster, dir, makeNode }: Parts<N>) {
    this.#spec = spec;
    this.cloud = cloud;
    this.cluster = cluster;
    this.#dir = dir;
    this.#makeNode = makeNode;
  }

  /** Starts everything. Called once, by `createSystem`. */
  async start(): Promise<void> {
    for (let index = 0; index < (this.#spec.ipamds ?? 2); index++) await this.#addIpamd(`ipamd${index}`);
    for (const ipamd of this.ipamds) ipamd.start();
    for (const { name, cores = 4 } of this.#spec.nodes) await this.#addNode(name, cores);
    await this.#awaitKinds();
    if (this.#spec.joinsAll !== false) await Promise.all(this.nodes.map((node) => this.join(node.name)));
  }

  /** The node of that name. @throws Error when there is none */
  node(name: string): N {
    const found = this.nodes.find((node) => node.name === name);
    if (found === undefined) throw new Error(`${name}: no such node in this system`);
    return found;
  }

  /** Lets a node join: its kubelet makes the Node, its agent starts. */
  async join(name: string, more: NodeMarks = {}): Promise<void> {
    await this.#register(name, more);
    await this.node(name).startAgent();
  }

  /** The NodeENIConfig of a node as the store has it; undefined when there is none. */
  async nec(name: string): Promise<SeenNec | undefined> {
    return this.cluster.admin.get(NODE_ENI_CONFIGS, { name });
  }

  /** Changes a NodeENIConfig as a person with kubectl does. */
  async patchNec(name: string, body: object): Promise<void> {
    await this.cluster.admin.patch(NODE_ENI_CONFIGS, { name }, { kind: 'merge', body });
  }

  /** Changes annotations of a Node or takes them off (null). */
  async annotateNode(name: string, annotations: Readonly<Record<string, string | null>>): Promise<void> {
    await this.cluster.admin.patch(NODES, { name }, { kind: 'merge', body: { metadata: { annotations } } });
  }

  /** Changes the cluster's ConfigMap. */
  async configure(data: Readonly<Record<string, string>>): Promise<void> {
    const ref = { namespace: 'kube-system', name: 'tke-eni-ipamd' };
    await this.cluster.admin.patch(CONFIG_MAPS, ref, { kind: 'merge', body: { data } });
  }

  /** Waits until a NodeENIConfig is as wanted, and returns it. */
  async awaitNec(
    name: string,
    what: string,
    isWanted: (nec: SeenNec) => boolean,
    timeoutMs = 60_000,
  ): Promise<SeenNec> {
    return waitUntil(
      async () => {
        const nec = await this.nec(name);
        return nec !== undefined && isWanted(nec) && nec;
      },
      {
        what: `${what} (${name})`,
        timeoutMs,
        everyMs: 50,
        explain: () => `${this.#tell(name)}\n${this.logs().slice(-3_000)}`,
      },
    );
  }

  /** Waits until a node has no NodeENIConfig any more. */
  async awaitGone(name: string, timeoutMs = 60_000): Promise<void> {
    await waitUntil(async () => (await this.nec(name)) === undefined, {
      what: `no NodeENIConfig ${name}`,
      timeoutMs,
      everyMs: 50,
      explain: () => `${this.#tell(name)}\n${this.logs().slice(-3_000)}`,
    });
  }

  /** The replica that holds the lock, other than one that did. @throws Error when none does within `timeoutMs` */
  async leader(other: { readonly not?: IpamdProcess } = {}, timeoutMs = 60_000): Promise<IpamdProcess> {
    return waitUntil(
      async () => {
        const holder = await this.#holder();
        const isIt = (ipamd: IpamdProcess): boolean => ipamd.isRunning && holder.includes(ipamd.identity);
        return this.ipamds.find((ipamd) => ipamd !== other.not && isIt(ipamd));
      },
      { what: 'a leader of ipamd', timeoutMs, everyMs: 50, explain: () => this.logs().slice(-3_000) },
    );
  }

  /** Gives every component another token for the API server and refuses the old ones, as a rotation does. */
  rotateTokens(): void {
    for (const rotate of this.#tokens) rotate();
  }

  /** Everything that ipamd and the agents wrote. */
  logs(): string {
    const ofIpamd = this.ipamds.map((ipamd) => `== ${ipamd.name}\n${ipamd.logs().slice(-4_000)}`);
    return [...ofIpamd, ...this.nodes.map((node) => `== ${node.name}\n${node.logs().slice(-2_000)}`)].join('\n');
  }

  /** Ends every process and removes every namespace and file. */
  async close(): Promise<void> {
    await Promise.all([...this.ipamds.map((ipamd) => ipamd.kill()), ...this.nodes.map((node) => node.close())]);
    for (const close of this.#doors) close();
    await this.cluster.close();
    await this.cloud.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #register(name: string, more: NodeMarks): Promise<void> {
    await this.cluster.addNode({
      name,
      instanceId: this.cloud.instanceOf(name),
      ip: this.cloud.vpc.node(name).primary.primaryIp,
      cores: this.node(name).cores,
      zone: this.#spec.nodes.find((node) => node.name === name)?.zone ?? ZONE,
      ...more,
    });
  }

  async #addIpamd(name: string): Promise<void> {
    const room = await this.cloud.createRoom(name);
    const kube = openDoor(room, KUBE_PORT, this.cluster.server.accept);
    const cloud = openDoor(room, CLOUD_PORT, (socket) => this.cloud.server.accept(socket));
    this.#doors.push(kube.close, cloud.close);
    const dir = join(this.#dir, name);
    mkdirSync(dir);
    const { path, rotate } = this.cluster.kubeconfig('tke-eni-ipamd', dir, kube.address);
    this.#tokens.push(rotate);
    const { key } = this.cloud;
    const program = this.#spec.ipamdProgram ?? 'packaged';
    const flags = {
      'node-release-grace': '2s',
      'orphan-grace': '1m',
      'record-delay': '500ms',
      ...this.#spec.ipamdFlags,
    };
    this.ipamds.push(new IpamdProcess({ name, room, dir, kube, cloud, kubeconfig: path, key, program, flags }));
  }

  async #addNode(name: string, cores: number): Promise<void> {
    const { cloud, cluster } = this;
    const dir = join(this.#dir, name);
    mkdirSync(dir);
    const kube = openDoor(cloud.vpc.node(name).netns, KUBE_PORT, cluster.server.accept);
    this.#doors.push(kube.close);
    const { path, rotate } = cluster.kubeconfig('tke-eni-agent', dir, kube.address);
    this.#tokens.push(rotate);
    const flags = { ...AGENT_FLAGS, ...this.#spec.agentFlags };
    this.nodes.push(await this.#makeNode({ name, cores, dir, cloud, cluster, kube, kubeconfig: path, flags }));
  }

  /** Agents only read definitions; they come with the first leader. */
  async #awaitKinds(): Promise<void> {
    if (this.ipamds.length === 0) return installKinds(this.cluster.admin);
    await waitUntil(() => this.cluster.server.objects('customresourcedefinitions', 'apiextensions.k8s.io').length > 0, {
      what: 'definitions of our kinds',
      timeoutMs: 60_000,
      everyMs: 50,
      explain: () => this.logs(),
    });
  }

  async #holder(): Promise<string> {
    const ref = { namespace: 'kube-system', name: 'tke-eni-ipamd-leader' };
    const lock = await this.cluster.admin.get(CONFIG_MAPS, ref);
    return lock?.metadata.annotations?.['control-plane.alpha.kubernetes.io/leader'] ?? '';
  }

  #tell(name: string): string {
    const necs = this.cluster.server.objects(NODE_ENI_CONFIGS.plural, NODE_ENI_CONFIGS.group);
    return JSON.stringify(necs.find((nec) => nec.metadata.name === name) ?? 'no NodeENIConfig');
  }
}

const AGENT_FLAGS = {
  'ip-cooldown': '1s',
  'gc-interval': '5s',
  'add-wait': '5s',
  'force-reuse-after': '500ms',
} as const;
