import { API_GROUP } from '../../../crd/names.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import type { RunningIpamd } from '../../../ipamd/ipamd.ts';
import { updateGuarded } from '../../../kube/guarded-update.ts';
import type { KubeObject, OwnerReference } from '../../../kube/kube-client.ts';
import { CONFIG_MAPS, NODE_ENI_CONFIGS, NODES, PODS } from '../../../kube/resource-types.ts';
import { recordOf } from '../../../runtime/json.ts';
import { ADMIN } from '../../../sim/kube-api/auth/tokens.ts';
import { dispatch } from '../../../sim/kube-api/verbs/dispatch.ts';
import { type ShellScene, shellScene } from './shell-scene.ts';

/** Two zones, each with a subnet for Pods. */
const CLOUD = {
  vpcId: 'vpc-00000001',
  subnets: [
    { subnetId: 'subnet-pods0001', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/20' },
    { subnetId: 'subnet-node0001', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' },
    { subnetId: 'subnet-pods0002', zone: 'ap-guangzhou-4', cidr: '10.2.0.0/20' },
    { subnetId: 'subnet-node0002', zone: 'ap-guangzhou-4', cidr: '10.0.1.0/24' },
  ],
} as const;

/** A sandbox: what really has an address or ENI on a node, whatever the API server says. */
export type Sandbox = {
  readonly pod: string;
  readonly uid: string;
  readonly node: string;
  readonly ip: string;
  readonly eniId: string;
};

/** What a Pod of a test is made with, beside its annotations. */
type PodMetadata = { readonly labels?: Readonly<Record<string, string>>; readonly ownerReferences?: OwnerReference[] };

/** Nodes by their name, with the last digit of their zone. */
export type NodeZones = Readonly<Record<string, 3 | 4>>;

/** The size of an instance in the cloud. */
type InstanceSize = { readonly cores: number; readonly extendEnis?: number };

const STEP_MS = 250;
const LIMIT_MS = 900_000;

/**
 * A whole ipamd in this process, with a cloud of two zones, an API server, kubelets, and agents that are as short as they
 * can be. What the agents give to sandboxes, and what they want and offer, is the subclass's.
 */
export abstract class PodCluster {
  readonly scene: ShellScene;
  readonly sandboxes = new Map<string, Sandbox>();
  /** Pods that a kubelet was told of, by uid; it starts and stops them. */
  protected readonly started = new Map<string, { readonly pod: string; readonly node: string }>();
  /** The highest epoch of the supply that was in force, by node. */
  readonly #epochs = new Map<string, number>();
  readonly #flags: readonly string[];
  #ipamd: RunningIpamd | undefined;
  #lives = 0;
  #name = '';

  protected constructor(scene: ShellScene, flags: readonly string[]) {
    this.scene = scene;
    this.#flags = ['--leader-elect=false', ...flags];
  }

  /** Returns what the agent of a node gives to a Pod that has nothing yet. */
  protected abstract grant(node: string, pod: string, uid: string): Pick<Sandbox, 'ip' | 'eniId'> | undefined;

  /** Returns what the agent of a node wants and offers; of a supply that is not believed it offers nothing. */
  protected abstract demandOf(node: string, isBelieved: boolean): Partial<NodeEniConfigSpec>;

  /** Checks what must hold at any moment. @throws Error when it does not */
  protected abstract check(): void;

  /** Opens the scene of a cluster, with both subnets for Pods. */
  protected static async openScene(): Promise<ShellScene> {
    const scene = await shellScene(CLOUD);
    const ref = { namespace: 'kube-system', name: 'tke-eni-ipamd' };
    const data = { TKE_ENI_IPAMD_SUBNET_ID: 'subnet-pods0001:subnet-pods0002', TKE_ENI_IPAMD_VPC_ID: CLOUD.vpcId };
    await scene.clock.run(updateGuarded(scene.kube, CONFIG_MAPS, ref, (current) => ({ ...current, data })));
    return scene;
  }

  protected async joinNodes(nodes: NodeZones, size: InstanceSize): Promise<void> {
    for (const [name, zone] of Object.entries(nodes)) {
      const instanceId = instanceOf(name);
      const subnetId = zone === 3 ? 'subnet-node0001' : 'subnet-node0002';
      this.scene.host.model.state.addInstance({ instanceId, subnetId, ...size });
      const providerID = `qcloud:///100003/${instanceId}`;
      const status = { conditions: [{ type: 'Ready', status: 'True' }] };
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: { providerID }, status };
      await this.run(this.scene.kube.create(NODES, node));
    }
  }

  async run<T>(promise: Promise<T>): Promise<T> {
    return await this.scene.clock.run(promise);
  }

  async startIpamd(...flags: readonly string[]): Promise<void> {
    // Of one length: a fault for a client meets every client whose name has this name as a part.
    this.#name = `ipamd-${String(++this.#lives).padStart(4, '0')}`;
    this.#ipamd = await this.scene.start({ name: this.#name, flags: [...this.#flags, ...flags] });
  }

  /** Nothing of ipamd reaches the API server from this moment on: the beginning of a kill. */
  cutOff(): void {
    this.scene.server.partition(this.#name);
  }

  /** As a kill: nothing of it reaches the API server any more, while its calls of the cloud go on; then a new one starts. */
  async killIpamd(): Promise<void> {
    const old = this.#ipamd;
    const { heal } = this.scene.server.partition(this.#name);
    await this.startIpamd();
    if (old === undefined) return;
    // It ends by itself, and reports to no one.
    old.close().then(heal, heal);
  }

  async stopIpamd(): Promise<void> {
    if (this.#ipamd !== undefined) await this.run(this.#ipamd.close());
    this.#ipamd = undefined;
  }

  /** Makes a Pod; with '' for a node it has none yet. Returns its uid, by which its kubelet knows it. */
  protected async makePod(
    name: string,
    node: string,
    annotations: Readonly<Record<string, string>>,
    { metadata = {}, kubeletUid }: { readonly metadata?: PodMetadata; readonly kubeletUid?: string | undefined } = {},
  ): Promise<string> {
    const made = await this.run(
      this.scene.kube.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'default', annotations, ...metadata },
        spec: { containers: [{ name: 'c', image: 'i' }], ...(node === '' ? {} : { nodeName: node }) },
        status: { phase: 'Pending' },
      }),
    );
    const uid = kubeletUid ?? made.metadata.uid ?? '';
    if (node !== '') this.started.set(uid, { pod: name, node });
    return uid;
  }

  /** Deletes a Pod, and its kubelet ends its sandbox. */
  async deletePod(name: string): Promise<void> {
    await this.forcePod(name);
    for (const [uid, { pod }] of this.started) if (pod === name) this.endSandbox(uid);
  }

  /** Deletes a Pod by force: its sandbox lives on. */
  async forcePod(name: string): Promise<void> {
    const { server, clock } = this.scene;
    const resource = server.api.registry.find('', 'v1', 'pods');
    if (resource === undefined) throw new Error('no Pods');
    const target = { resource, namespace: 'default', name, subresource: '' };
    const query = new URLSearchParams('gracePeriodSeconds=0');
    dispatch(server.api, 'delete', { ...target, query, user: ADMIN, userAgent: 'kubelet', contentType: '', body: {} });
    await clock.advance(1);
  }

  /** A kubelet ends the sandbox of a Pod. */
  endSandbox(uid: string): void {
    this.started.delete(uid);
    this.sandboxes.delete(uid);
  }

  objects(plural: string): readonly KubeObject[] {
    // The store's objects are those of the API.
    return this.scene.server.objects(plural, API_GROUP) as readonly KubeObject[];
  }

  events(): readonly string[] {
    return this.scene.server.objects('events').map((one) => `${String(one['reason'])} ${String(one['message'])}`);
  }

  statusOf(node: string): NodeEniConfigStatus {
    // Checked by the schema of the API server.
    return recordOf(this.scene.nec(node)?.['status']) as NodeEniConfigStatus;
  }

  specOf(node: string): NodeEniConfigSpec {
    // Checked by the schema of the API server.
    return recordOf(this.scene.nec(node)?.['spec']) as NodeEniConfigSpec;
  }

  /** Whether an ENI is on a node by the cloud's word: only then its interface is in the kernel there. */
  isOn(node: string, eniId: string | undefined): boolean {
    const eni = this.scene.host.model.state.enis.get(eniId ?? '');
    return eni?.attachment?.instanceId === instanceOf(node);
  }

  /** Goes on until it holds. @throws Error when it does not, or when {@link check} fails */
  async until(holds: () => boolean, what = 'it does not come to hold'): Promise<void> {
    if (!(await this.scene.clock.until(holds, LIMIT_MS, () => this.step()))) throw new Error(what);
  }

  async pass(ms: number): Promise<void> {
    const untilMs = this.scene.clock.monotonicMs() + ms;
    while (this.scene.clock.monotonicMs() < untilMs) await this.step();
  }

  async step(): Promise<void> {
    await this.scene.clock.advance(STEP_MS);
    for (const { metadata } of this.objects('nodeeniconfigs')) await this.#agentTurn(metadata.name);
    this.check();
  }

  async #agentTurn(node: string): Promise<void> {
    const nec = this.scene.nec(node);
    if (nec === undefined) return;
    const { supplyEpoch = 0 } = this.statusOf(node);
    // An older state than one that was in force is not believed.
    const epoch = Math.max(supplyEpoch, this.#epochs.get(node) ?? 0);
    this.#epochs.set(node, epoch);
    const isBelieved = supplyEpoch === epoch;
    if (isBelieved) await this.#startSandboxes(node);
    const spec = this.specOf(node);
    const wanted = { ...spec, ...this.demandOf(node, isBelieved), observedSupplyEpoch: epoch };
    if (JSON.stringify(wanted) === JSON.stringify(spec)) return;
    const change = (current: KubeObject): KubeObject => ({ ...current, spec: wanted });
    const guard = { current: nec, attempts: 1 };
    await this.run(updateGuarded(this.scene.kube, NODE_ENI_CONFIGS, { name: node }, change, guard)).catch(() => {});
  }

  async #startSandboxes(node: string): Promise<void> {
    for (const [uid, { pod, node: on }] of this.started) {
      if (on !== node || this.sandboxes.has(uid)) continue;
      const granted = this.grant(node, pod, uid);
      if (granted === undefined) continue;
      this.sandboxes.set(uid, { pod, uid, node, ...granted });
      const body = { status: { phase: 'Running', podIP: granted.ip, podIPs: [{ ip: granted.ip }] } };
      const ref = { namespace: 'default', name: pod };
      await this.run(this.scene.kube.patch(PODS, ref, { kind: 'merge', body, subresource: 'status' })).catch(() => {});
    }
  }
}

function instanceOf(node: string): string {
  return `ins-node${node}`;
}
