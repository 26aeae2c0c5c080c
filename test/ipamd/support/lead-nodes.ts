import type { TencentApi } from '../../../cloud/tencent/requests.ts';
import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { decodeNec } from '../../../ipamd/cache/decode-nec.ts';
import { CircuitBreakers } from '../../../ipamd/calls/circuit-breakers.ts';
import { CloudObserver } from '../../../ipamd/calls/cloud-observer.ts';
import type { NodeDeps } from '../../../ipamd/calls/node-deps.ts';
import { NodeMemories } from '../../../ipamd/calls/node-memory.ts';
import { reconcileNode } from '../../../ipamd/calls/reconcile-node.ts';
import type { NodeFactValues } from '../../../ipamd/decide/node-view.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import { FreshStore } from '../../../kube/fresh-store.ts';
import { updateGuarded } from '../../../kube/guarded-update.ts';
import { openInformer } from '../../../kube/informer.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { type Logger, silentLogger } from '../../../runtime/log.ts';
import type { InProcessApi } from '../../../sim/kube-api/in-process.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import type { CloudState } from '../../../sim/vpc/api/model/state.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';

export const CLUSTER = 'cls-test0001';
const LEASE_MS = 15_000;
const REQUEST_TIMEOUT_SECONDS = 30;
const NODES_SUBNET = 'subnet-nodes000';

/** The object of a node as it is stored. */
export type StoredNec = KubeObject & { readonly spec?: NodeEniConfigSpec; readonly status?: NodeEniConfigStatus };

/** A time in office: what its leader has and answers to. */
type Office = {
  readonly clock: VirtualClock;
  readonly api: InProcessApi;
  readonly epoch: number;
  /** What the leader writes with, and the cloud that it calls: both may be watched. */
  readonly kube: KubeClient;
  readonly cloudApi: TencentApi;
  readonly nextId: () => string;
  readonly facts: NodeDeps['facts'];
  readonly nodes: readonly string[];
  readonly signal: AbortSignal;
  readonly log?: Logger;
  /** Of the leader's parts, those that a scene watches. */
  readonly beside?: Partial<NodeDeps>;
};

/** Begins a time in office: each node is reconciled when its object changes, or something is due, until the signal aborts. */
export function leadNodes(office: Office): { readonly memory: NodeMemories; wake(name: string): void } {
  const { clock, epoch, signal, log = silentLogger } = office;
  const random = seededRandom(epoch);
  const cloud = createTencentCloud({ api: office.cloudApi, clock, random });
  const client = office.api.client({ userAgent: 'ipamd' });
  const necs = openInformer({ client, type: NODE_ENI_CONFIGS, decode: decodeNec, clock, log, random });
  void necs.start(signal);
  const due = new Map<string, PromiseWithResolvers<void>>();
  const wake = (name: string): void => due.get(name)?.resolve();
  const memory = new NodeMemories();
  const deps: NodeDeps = {
    cloud,
    kube: office.kube,
    necs: new FreshStore(necs, ({ object }) => object.metadata.resourceVersion),
    listings: () => necs.listings,
    facts: office.facts,
    leader: {
      epoch,
      clusterId: CLUSTER,
      requestTimeoutSeconds: REQUEST_TIMEOUT_SECONDS,
      term: { startedMs: clock.monotonicMs(), leaseMs: LEASE_MS, signal },
    },
    ids: { next: office.nextId, now: () => new Date(clock.nowMs()).toISOString() },
    clock,
    log,
    events: { record: () => undefined },
    metrics: createIpamdMetrics(clock, { release: 'test' }),
    breakers: new CircuitBreakers(clock),
    cloudObserver: new CloudObserver(cloud, clock, CLUSTER),
    memory,
    enqueueNode: wake,
    queuedAgain: (name) => due.get(name)?.promise ?? Promise.resolve(),
    ...office.beside,
  };
  const run = async (name: string): Promise<void> => {
    due.set(name, Promise.withResolvers());
    necs.subscribe(() => wake(name));
    await necs.synced(signal);
    while (!signal.aborted) {
      const changed = Promise.withResolvers<void>();
      due.set(name, changed);
      const waitMs = await reconcileNode(deps, name, signal).then(
        (result) => (result.kind === 'again' ? result.afterMs : 3_600_000),
        (error: unknown) => {
          log.warn('turn failed', { error });
          return 1_000;
        },
      );
      const over = new AbortController();
      const timer = clock.sleep(waitMs, AbortSignal.any([signal, over.signal])).catch(() => undefined);
      await Promise.race([changed.promise, timer]);
      over.abort();
    }
  };
  for (const name of office.nodes) run(name).catch(() => undefined);
  return { memory, wake };
}

/** What is known of a node beside its object, by the state of the cloud: its instance, and the subnets for Pods. */
export function factValuesOf(
  { instances, subnets }: Pick<CloudState, 'instances' | 'subnets'>,
  instanceId: string,
  limits: { readonly secondaryEnis: number; readonly secondaryIpsPerEni: number },
): NodeFactValues {
  const instance = instances.get(instanceId);
  return {
    leaving: 'no',
    instance: instance && {
      instanceId,
      instanceType: instance.instanceType,
      zone: instance.zone,
      vpcId: instance.vpcId,
      isRunning: instance.state === 'RUNNING',
      ...limits,
    },
    maxRouteENI: undefined,
    maxIPPerENI: undefined,
    floor: 0,
    initialDemand: 0,
    subnets: [...subnets.values()]
      .filter(({ subnetId }) => subnetId !== NODES_SUBNET)
      .map(({ subnetId, cidr, pool }) => ({ subnetId, cidr, freeIps: pool.free, isBlocked: false })),
    securityGroups: undefined,
  };
}

/** What the agent of a node writes of its spec. */
type AgentSpec = Pick<NodeEniConfigSpec, 'desiredRouteENIIP' | 'releasableIPs'>;

/** Runs a stand-in agent for good: what it wants and offers of a supply is written when it is not in the object yet. */
export async function runAgent(
  clock: VirtualClock,
  kube: KubeClient,
  name: string,
  decide: (status: NodeEniConfigStatus) => AgentSpec | undefined,
): Promise<void> {
  const change = (object: StoredNec): KubeObject | undefined => {
    const { status = {}, spec: before } = object;
    const own = decide(status);
    const observedSupplyEpoch = Math.max(status.supplyEpoch ?? 0, before?.observedSupplyEpoch ?? 0);
    const spec = { ...before, ...own, observedSupplyEpoch };
    return own === undefined || JSON.stringify(spec) === JSON.stringify(before) ? undefined : { ...object, spec };
  };
  for (;;) {
    await clock.sleep(500);
    await updateGuarded(kube, NODE_ENI_CONFIGS, { name }, (object) => change(object as StoredNec)).catch(
      () => undefined,
    );
  }
}
