import { join } from 'node:path';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { NODE_ENI_CONFIGS, PODS } from '../../kube/resource-types.ts';
import { type CallOptions, SceneNode, type ScenePod } from '../e2e/support/scene-node.ts';
import { type CriServer, startCriServer } from '../support/cri-server.ts';
import { kubernetesArgs } from '../support/exec-cni.ts';
import { findViolations } from '../support/invariants.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type Cluster, POD_NAMESPACE, type PodMarks } from './cluster.ts';
import type { Door } from './door.ts';
import type { SystemMember, SystemMemberParts } from './system-member.ts';
import type { VpcCloud } from './vpc-cloud.ts';

/** What a node is made of: with a stand-in for the runtime. */
type SystemNodeParts = SystemMemberParts & { readonly cri: CriServer };

/** A Pod as Kubernetes and the runtime have it. */
export type SystemPod = {
  readonly name: string;
  readonly sandbox: ScenePod;
  readonly ip: string;
  /** Default tke-route-eni. */
  readonly plugin?: CallOptions['plugin'];
};

/** What tests may want otherwise than usual of a Pod. */
export type RunPodOptions = {
  /** Milliseconds that it may wait for its network. */
  readonly waitMs?: number;
  /** The API server is not told. */
  readonly isOffline?: boolean;
  readonly marks?: PodMarks;
  readonly plugin?: CallOptions['plugin'];
};

/** Milliseconds that a Pod may wait for its network, sandbox after sandbox, as a kubelet tries. */
const POD_WAIT_MS = 90_000;

/** A node with its agent in cluster mode, its runtime and its kubelet. */
export class SystemNode implements SystemMember {
  readonly name: string;
  readonly cores: number;
  readonly kube: Door;
  readonly scene: SceneNode;
  readonly cri: CriServer;
  #cloud: VpcCloud;
  #cluster: Cluster;
  #pods = new Map<string, SystemPod>();
  #hasAgent = false;

  constructor(parts: SystemNodeParts) {
    this.name = parts.name;
    this.cores = parts.cores;
    this.kube = parts.kube;
    this.cri = parts.cri;
    this.#cloud = parts.cloud;
    this.#cluster = parts.cluster;
    this.scene = new SceneNode({
      vpc: parts.cloud.vpc,
      name: parts.name,
      dir: parts.dir,
      ruleMode: 'compact',
      enis: [],
      supplyFile: 'none',
      criSocket: parts.cri.socketPath,
      flags: {
        'node-name': parts.name,
        'supply-source': 'cluster',
        kubeconfig: parts.kubeconfig,
        'rule-mode': 'compact',
        'metrics-address': '127.0.0.1:61680',
        ...parts.flags,
      },
    });
  }

  /** Starts the agent, or starts it again; by default it is not waited for: it is ready when it has addresses. */
  async startAgent(until: 'ready' | 'listening' | 'started' = 'listening'): Promise<void> {
    await this.scene.startAgent({ until });
    this.#hasAgent = true;
  }

  /** Ends the agent without a chance to tidy up. */
  async killAgent(): Promise<void> {
    await this.scene.killAgent();
  }

  /** Waits until an ADD could be served. */
  async awaitReady(timeoutMs = 60_000): Promise<void> {
    await this.scene.agent.awaitUntil('ready', timeoutMs);
  }

  /** The agent's log. */
  logs(): string {
    return this.#hasAgent ? this.scene.agent.logs() : '';
  }

  /** The Pods that run here. */
  get pods(): readonly SystemPod[] {
    return [...this.#pods.values()];
  }

  /**
   * Does what a scheduler, a kubelet and a runtime do for a Pod: the object, the sandbox, ADD, and the address in its
   * status. A failed ADD is followed by DEL and another sandbox. @throws Error with the last answer
   */
  async runPod(name: string, options: RunPodOptions = {}): Promise<SystemPod> {
    if (options.isOffline !== true) await this.#cluster.addPod(name, this.name, options.marks);
    const object = await this.#cluster.admin.get(PODS, { namespace: POD_NAMESPACE, name });
    const { waitMs = POD_WAIT_MS } = options;
    let last = '';
    const uid = object?.metadata.uid;
    const tryOnce = () => this.#tryPod(name, uid, options, (text) => (last = text));
    const pod = await waitUntil(tryOnce, {
      what: `network of Pod ${name} on ${this.name}`,
      timeoutMs: waitMs,
      everyMs: 200,
      explain: () => `${last}\n${this.logs().slice(-3_000)}`,
    });
    this.#pods.set(name, pod);
    if (options.isOffline !== true) await this.#cluster.setPodRunning(name, pod.ip);
    return pod;
  }

  async #tryPod(
    name: string,
    uid: string | undefined,
    { plugin }: RunPodOptions,
    tell: (text: string) => void,
  ): Promise<SystemPod | undefined> {
    const args = kubernetesArgs({ name, namespace: POD_NAMESPACE, ...(uid === undefined ? {} : { uid }) });
    const sandbox = await this.scene.newPod({ name, namespace: POD_NAMESPACE, args });
    const about = { podName: name, podNamespace: POD_NAMESPACE, ...(uid === undefined ? {} : { podUid: uid }) };
    this.cri.addSandbox({ id: sandbox.containerId, ...about, netns: sandbox.netns.path });
    try {
      const { ip } = await this.scene.add(sandbox, plugin === undefined ? {} : { plugin });
      this.cri.addSandbox({ id: sandbox.containerId, ...about, netns: sandbox.netns.path, ips: [ip] });
      return { name, sandbox, ip, ...(plugin === undefined ? {} : { plugin }) };
    } catch (error) {
      tell(String(error));
      return await this.#endSandbox(sandbox);
    }
  }

  async #endSandbox(sandbox: SystemPod['sandbox']): Promise<undefined> {
    await this.scene.delete(sandbox).catch(() => undefined);
    this.cri.removeSandbox(sandbox.containerId);
    await sandbox.netns.close();
  }

  /** Takes a Pod away: its network, its sandbox, its object. @throws Error with the answer when DEL fails */
  async removePod(name: string, options: { readonly isOffline?: boolean } = {}): Promise<void> {
    const pod = this.#pods.get(name);
    if (pod === undefined) throw new Error(`${name}: no such Pod on ${this.name}`);
    if (options.isOffline !== true) await this.#cluster.askRemoval(name);
    await this.scene.delete(pod.sandbox);
    this.cri.removeSandbox(pod.sandbox.containerId);
    await pod.sandbox.netns.close();
    this.#pods.delete(name);
    if (options.isOffline !== true) await this.#cluster.removePod(name);
  }

  /** What the invariant checker finds wrong on this node, judged by the ENIs that the VPC has attached to it now. */
  async violations(): Promise<readonly string[]> {
    if (!this.#hasAgent) return [];
    const { vpc } = this.#cloud;
    const whole = new Set(await this.#wholeEnis());
    const ids = vpc.enisOf(this.name);
    const enis = await Promise.all(ids.filter((eniId) => !whole.has(eniId)).map((eniId) => vpc.eni(eniId)));
    const directEnis = ids.filter((eniId) => whole.has(eniId)).map((eniId) => vpc.directEni(eniId));
    const found = await findViolations({
      netns: this.scene.netns,
      ruleMode: 'compact',
      enis,
      directEnis,
      stateDir: this.scene.agent.stateDir,
      sandboxes: this.pods.map(({ sandbox, ip }) => ({
        id: sandbox.containerId,
        ips: [ip],
        netns: sandbox.netns.path,
      })),
    });
    return found.map((line) => `${this.name}: ${line}`);
  }

  /** ENIs that Pods get as a whole. */
  async #wholeEnis(): Promise<readonly string[]> {
    const nec = await this.#cluster.admin.get(NODE_ENI_CONFIGS, { name: this.name });
    // As the store has it: what our decoder would refuse, the schema has refused.
    const status = nec?.['status'] as NodeEniConfigStatus | undefined;
    return (status?.eniInfos ?? []).filter(({ mode }) => mode === 'direct-eni').map(({ eniID }) => eniID);
  }

  /** Where the agent keeps its journal. */
  get journalPath(): string {
    return join(this.scene.agent.stateDir, 'journal.db');
  }

  /** Ends the agent and the runtime. */
  async close(): Promise<void> {
    await this.scene.killAgent();
    await this.cri.close();
  }
}

/** Makes a node with a stand-in for the runtime. */
export async function makeSystemNode(parts: SystemMemberParts): Promise<SystemNode> {
  return new SystemNode({ ...parts, cri: await startCriServer(join(parts.dir, 'cri.sock')) });
}
