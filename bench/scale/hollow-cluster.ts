import { openInformer } from '../../kube/informer.ts';
import type { KubeClient, KubeObject, ResourceType } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS, NODES, PODS } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import type { ContractClient } from '../../test/kube-api/contract/client.ts';
import { SimulatedAgent } from '../ipamd/simulated-agent.ts';
import {
  hollowNode,
  hollowNodeStatus,
  hollowPod,
  hollowPodStatus,
  hollowReplicaSet,
  nodeNameOf,
} from './hollow-objects.ts';

/** What a hollow cluster runs with. */
type HollowOptions = {
  readonly nodes: number;
  readonly kube: KubeClient;
  /** Ends Pods at once, as their kubelets do at last. */
  readonly raw: ContractClient;
};

const REPLICA_SETS: ResourceType = {
  group: 'apps',
  version: 'v1',
  plural: 'replicasets',
  kind: 'ReplicaSet',
  isNamespaced: true,
};

type HollowPod = { readonly name: string; readonly node: number };

/** How often a kubelet repeats the status of a Node in which nothing changes. @see nodeStatusReportFrequency */
const HEARTBEAT_MS = 300_000;
/** Writes under way at once. */
const WRITERS = 24;

/**
 * Nodes without machines: what kubelets and agents write of them and of their Pods, and nothing else. Failures of the
 * API server are met as kubelets meet them: by trying again.
 */
export class HollowCluster {
  readonly #options: HollowOptions;
  readonly #agents: readonly SimulatedAgent[];
  readonly #byId = new Map<string, HollowPod>();
  readonly #stop = new AbortController();
  #writes: Promise<unknown>[] = [];
  #running = 0;
  #owner: KubeObject | undefined;
  #serial = 0;

  constructor(options: HollowOptions) {
    this.#options = options;
    this.#agents = Array.from(
      { length: options.nodes },
      (_, index) =>
        new SimulatedAgent({
          nodeName: nodeNameOf(index),
          kube: options.kube,
          clock: systemClock,
          cooldownMs: 120_000,
          isQuick: false,
          onAddress: (podId, ips) => this.#onAddress(podId, ips),
        }),
    );
  }

  /** Pods that have been written as running. */
  get running(): number {
    return this.#running;
  }

  /** Addresses that Pods could have at once, of the node that has the fewest. */
  get fewestFree(): number {
    return Math.min(...this.#agents.map((agent) => agent.free));
  }

  /** Writes of NodeENIConfigs by the agents that the API server took. */
  get agentWrites(): number {
    return this.#agents.reduce((sum, { writes }) => sum + writes, 0);
  }

  /**
   * Makes all Nodes with `podsPerNode` Pods each; these wait for their addresses. Pods come as fast as the API server takes
   * them, or one every `everyMs` to each node.
   */
  async fill(podsPerNode: number, everyMs = 0): Promise<void> {
    const { nodes, kube } = this.#options;
    this.#owner = await kube.create(REPLICA_SETS, hollowReplicaSet());
    await inTurn(nodes, async (index) => {
      await kube.create(NODES, hollowNode(index));
      await this.#beat(index);
    });
    const startedMs = performance.now();
    await inTurn(nodes * podsPerNode, async (pod) => {
      const leftMs = startedMs + (pod / nodes) * everyMs - performance.now();
      if (leftMs > 0) await systemClock.sleep(leftMs);
      await this.start(pod % nodes);
    });
  }

  /** Lets agents follow their objects and kubelets repeat themselves, until `close`. */
  run(): void {
    const { signal } = this.#stop;
    const informer = openInformer<KubeObject>({
      client: this.#options.kube,
      type: NODE_ENI_CONFIGS,
      decode: (object) => object,
      clock: systemClock,
      log: silentLogger,
      random: seededRandom(14),
    });
    const byName = new Map(this.#agents.map((agent, index) => [nodeNameOf(index), agent]));
    informer.subscribe(({ key, after }) => {
      if (after !== undefined) byName.get(key)?.observe(after);
    });
    void informer.start(signal);
    for (const agent of this.#agents) void agent.run(AbortSignal.any([signal]));
    void this.#beatForEver(signal);
  }

  /** A Pod comes to a node. */
  async start(node: number): Promise<void> {
    const { kube } = this.#options;
    const owner = this.#owner;
    if (owner === undefined) throw new Error('a hollow cluster is filled before Pods come one by one');
    this.#serial += 1;
    const name = `service-6c54bd5869-${this.#serial.toString(36).padStart(5, '0')}`;
    await persist(() => kube.create(PODS, hollowPod(name, node, owner)));
    await this.#writeStatus(name, undefined);
    this.#byId.set(name, { name, node });
    this.#agents[node]?.add(name);
  }

  /** The Pod that has been there longest ends. */
  async endOldest(): Promise<void> {
    const [pod] = this.#byId.values();
    if (pod === undefined) throw new RangeError('no Pod is left');
    const { name, node } = pod;
    this.#byId.delete(name);
    await persist(() => this.#options.kube.delete(PODS, { namespace: 'default', name }));
    await persist(() =>
      this.#options.raw.call('DELETE', `/api/v1/namespaces/default/pods/${name}`, { gracePeriodSeconds: 0 }),
    );
    this.#running -= 1;
    this.#agents[node]?.remove(name);
  }

  /** Waits for the writes under way. */
  async settle(): Promise<void> {
    await Promise.all(this.#writes);
    this.#writes = [];
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the benchmark is over'));
    await this.settle();
  }

  #onAddress(name: string, [ip]: readonly string[]): void {
    const write = async () => {
      await this.#writeStatus(name, ip);
      this.#running += 1;
    };
    this.#writes.push(write());
  }

  async #writeStatus(name: string, ip: string | undefined): Promise<void> {
    const status = hollowPodStatus(ip, new Date().toISOString().replace(/\.\d+/, ''));
    const body = { status };
    await persist(() =>
      this.#options.kube.patch(PODS, { namespace: 'default', name }, { kind: 'merge', body, subresource: 'status' }),
    );
  }

  async #beatForEver(signal: AbortSignal): Promise<void> {
    const { nodes } = this.#options;
    for (let index = 0; !signal.aborted; index = (index + 1) % nodes) {
      await systemClock.sleep(HEARTBEAT_MS / nodes, signal).catch(() => undefined);
      if (!signal.aborted) await this.#beat(index);
    }
  }

  async #beat(index: number): Promise<void> {
    const body = { status: hollowNodeStatus(index, new Date().toISOString().replace(/\.\d+/, '')) };
    await persist(() =>
      this.#options.kube.patch(NODES, { name: nodeNameOf(index) }, { kind: 'merge', body, subresource: 'status' }),
    );
  }
}

/** Runs `work` for 0 to `count` - 1, a few at a time. */
async function inTurn(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: WRITERS }, worker));
}

const RETRY_MS = 500;
const TRIES = 120;

/** Repeats what failed, for a minute. */
async function persist<T>(call: () => Promise<T>): Promise<T> {
  for (let left = TRIES; ; left--) {
    try {
      return await call();
    } catch (error) {
      if (left === 0) throw error;
      await systemClock.sleep(RETRY_MS);
    }
  }
}
