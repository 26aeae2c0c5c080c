import { type CloudNode, readCloudNode } from '../../cloud-controller-manager/nodes/cloud-node.ts';
import { CONTROLLERS } from '../../cloud-controller-manager/term/controllers.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { NODES } from '../../kube/resource-types.ts';
import { ccmScene, type SceneOptions } from './ccm-scene.ts';
import { ProcessLives } from './process-lives.ts';

const SUBNET = 'subnet-node0001';
/** Taint of a kubelet that waits for its cloud provider. */
export const UNINITIALIZED = {
  key: 'node.cloudprovider.kubernetes.io/uninitialized',
  value: 'true',
  effect: 'NoSchedule',
} as const;

/** How a Node registers. */
type NodeSpec = {
  readonly providerID?: string;
  readonly podCIDR?: string;
  readonly capacity?: Readonly<Record<string, string>>;
  readonly taints?: readonly object[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly addresses?: readonly { readonly type: string; readonly address: string }[];
  readonly isReady?: boolean;
};

/** The cloud controller manager with its controllers, and Nodes and instances that come and go. */
export class NodeWorld {
  readonly scene: Awaited<ReturnType<typeof ccmScene>>;
  /** The calls of the replicas. */
  readonly lives = new ProcessLives();
  #stop: () => Promise<void> = async () => undefined;
  #render: () => Promise<string> = async () => '';

  private constructor(scene: NodeWorld['scene']) {
    this.scene = scene;
  }

  /** Starts one replica that leads at once. */
  static async start(...flags: readonly string[]): Promise<NodeWorld> {
    return await NodeWorld.startIn({}, ...flags);
  }

  /** As `start`, in a cluster that is as the options say. */
  static async startIn(options: SceneOptions, ...flags: readonly string[]): Promise<NodeWorld> {
    const world = new NodeWorld(await ccmScene(options));
    await world.lead(...flags);
    return world;
  }

  /** Starts a replica in the place of the one before, which ends. */
  async lead(...flags: readonly string[]): Promise<void> {
    await this.stop();
    const { scene } = this;
    const elects = flags.some((flag) => flag.startsWith('--leader-elect')) ? [] : ['--leader-elect=false'];
    const ccm = await scene.start('ccm', [...elects, ...flags], CONTROLLERS, this.lives.begin());
    this.#stop = () => scene.clock.run(ccm.close());
    this.#render = () => ccm.metrics.registry.metrics();
    await scene.clock.advance(2_000);
  }

  /** The metrics of the replica, as it serves them. */
  async metrics(): Promise<string> {
    return await this.#render();
  }

  async stop(): Promise<void> {
    await this.#stop();
  }

  /** Starts an instance; returns its address. */
  addInstance(instanceId: string, more: object = {}): string {
    const { model } = this.scene.host;
    model.advance(this.scene.clock.nowMs());
    const { state } = model;
    state.addInstance({ instanceId, cores: 4, subnetId: SUBNET, ...more });
    const ips = state.enisOf(instanceId).flatMap((eni) => [...eni.ips.keys()]);
    return ips[0] ?? '';
  }

  /** Ends an instance; its kubelet is silent from then on. */
  async terminate(name: string, instanceId: string): Promise<void> {
    const { model } = this.scene.host;
    model.advance(this.scene.clock.nowMs());
    model.state.removeInstance(instanceId);
    await this.setReady(name, 'Unknown');
  }

  /** Registers a Node as its kubelet does. */
  async join(
    name: string,
    { providerID, podCIDR, capacity, taints = [], labels, annotations, addresses = [], isReady = true }: NodeSpec,
  ) {
    const { admin, clock } = this.scene;
    const network = podCIDR === undefined ? {} : { podCIDR, podCIDRs: [podCIDR] };
    const spec = { ...(providerID === undefined ? {} : { providerID }), ...network, taints };
    const metadata = { name, ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) };
    const ready = { type: 'Ready', status: isReady ? 'True' : 'False', reason: 'Kubelet' };
    const status = {
      addresses: [...addresses, { type: 'Hostname', address: name }],
      conditions: [ready],
      ...(capacity && { capacity }),
    };
    await clock.run(admin.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata, spec, status }));
  }

  /** Registers a Node of an instance that exists, initialised by the cluster service. */
  async joinInstance(name: string, instanceId: string, isReady = true): Promise<void> {
    const address = this.addInstance(instanceId);
    const addresses = [{ type: 'InternalIP', address }];
    await this.join(name, { providerID: `qcloud:///100003/${instanceId}`, addresses, isReady });
  }

  /** Writes the condition Ready, as kubelet and kube-controller-manager do. A Node that is gone stays so. */
  async setReady(name: string, status: 'True' | 'False' | 'Unknown'): Promise<void> {
    const body = { status: { conditions: [{ type: 'Ready', status, reason: 'Kubelet' }] } };
    const { admin, clock } = this.scene;
    try {
      await clock.run(admin.patch(NODES, { name }, { kind: 'strategic', body, subresource: 'status' }));
    } catch (error) {
      if (!isKubeError(error, 'NOT_FOUND')) throw error;
    }
  }

  /** Reads a Node past all faults. */
  node(name: string): CloudNode | undefined {
    const object = this.scene.server.objects('nodes').find(({ metadata }) => metadata.name === name);
    return object === undefined ? undefined : readCloudNode(object);
  }

  names(): readonly string[] {
    return this.scene.server
      .objects('nodes')
      .map(({ metadata }) => metadata.name)
      .sort();
  }

  async advance(ms: number): Promise<void> {
    await this.scene.clock.advance(ms);
  }
}
