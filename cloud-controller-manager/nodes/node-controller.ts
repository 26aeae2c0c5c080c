import type { CallContext, Instance, Zone } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { Contests, contestText } from '../../kube/contest.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { Reporter } from '../../kube/reporter.ts';
import { NODES } from '../../kube/resource-types.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import { StampAges } from '../../runtime/stamp-ages.ts';
import { chooseNode } from './choose-node.ts';
import { type CloudNode, readCloudNode } from './cloud-node.ts';
import { type FoundInstance, findInstances } from './find-instances.ts';
import type { NodeControllersDeps } from './node-settings.ts';
import { type NodePlan, planNode } from './plan-node.ts';

/** Nodes that join together share requests. */
const GATHER_MS = 200;
/** After a fault of the cloud or of the API server. */
const RETRY_MS = 5_000;
/** After a problem that a person or the cloud has to resolve. */
const PROBLEM_RETRY_MS = 30_000;
const WORKERS = 10;
const CONTEXT = { priority: 'warm', owner: 'nodes' } as const;

/**
 * Initialises Nodes that wait for their cloud provider, and keeps addresses and labels of all others, until aborted.
 * Faults of the cloud and of the API server are reported and tried again.
 */
export async function runNodeController(deps: NodeControllersDeps, signal: AbortSignal): Promise<void> {
  await new NodePasses(deps).run(signal);
}

/** Reasons of events about what is wrong with a Node. */
type NodeProblem = 'InstanceUnknown' | 'InstanceTaken' | 'AddressInvalid' | 'CloudRefused';

class NodePasses {
  readonly #deps: NodeControllersDeps;
  readonly #reports: Reporter<NodeProblem>;
  readonly #waiting = new Set<string>();
  /** By uid of a Node. */
  readonly #contests = new Contests();
  /** When Nodes are tried again; monotonic milliseconds. */
  readonly #retryAtMs = new Map<string, number>();
  #zones: ReadonlyMap<string, Zone> = new Map();
  #fullAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: NodeControllersDeps) {
    this.#deps = deps;
    this.#reports = new Reporter('a Node', deps);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { nodes, clock, log, config } = this.#deps;
    const change = new ChangeSignal(clock);
    const stop = nodes.subscribe(({ key, before, after }) => {
      if (after === undefined) this.#reports.forget(key);
      if (after === undefined || (before !== undefined && !isWaiting(readCloudNode(after)))) return;
      this.#waiting.add(key);
      change.notify();
    });
    try {
      while (!signal.aborted) {
        await this.#pass(signal).catch((error: unknown) => {
          if (!signal.aborted) log.error('a pass over the Nodes failed, will try again', { error });
        });
        const dueMs = Math.min(this.#fullAtMs + config.nodeStatusUpdateMs, ...this.#retryAtMs.values());
        const isDue = this.#waiting.size > 0;
        await change.wait(isDue ? 0 : Math.max(0, dueMs - clock.monotonicMs()), signal);
        await clock.sleep(GATHER_MS, signal).catch(() => {});
      }
    } finally {
      stop();
    }
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { nodes, instances, cloud, log, clock, config } = this.#deps;
    const nowMs = clock.monotonicMs();
    const isFull = nowMs - this.#fullAtMs >= config.nodeStatusUpdateMs;
    const due = [...this.#retryAtMs].flatMap(([name, atMs]) => (atMs <= nowMs ? [name] : []));
    const names = new Set(isFull ? nodes.keys() : [...this.#waiting, ...due]);
    if (isFull) this.#fullAtMs = nowMs;
    this.#waiting.clear();
    for (const name of names) this.#retryAtMs.delete(name);
    const all = [...nodes.values()].map(readCloudNode);
    const ours = all.filter((node) => names.has(node.name) && node.isOurs && !node.isLeaving);
    if (ours.length === 0) return;
    const context: CallContext = { ...CONTEXT, signal, timeoutMs: config.cloudTimeoutMs };
    const byId = ours.filter(({ providerId }) => providerId.kind !== 'none');
    const found = new Map(await findInstances({ instances: cloud.instances, log }, byId, undefined, context));
    instances.note([...found.values()].flatMap((one) => (one.kind === 'found' ? [one.instance] : [])));
    const byIp = ours.filter(({ providerId }) => providerId.kind === 'none');
    for (const [name, one] of await findInstances({ instances: cloud.instances, log }, byIp, instances.vpcId, context))
      found.set(name, one);
    if (signal.aborted) return;
    const chosen = chooseByInstance(all, found, (node) => instances.of(node));
    const queue = ours.values();
    const work = async (): Promise<void> => {
      for (const node of queue) await this.#handle(node, found.get(node.name), chosen, signal);
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
  }

  async #handle(
    node: CloudNode,
    found: FoundInstance | undefined,
    chosen: ReadonlyMap<string, string>,
    signal: AbortSignal,
  ): Promise<void> {
    if (found === undefined || signal.aborted) return;
    if (found.kind === 'unknown') return this.#report(node, 'InstanceUnknown', found.message);
    try {
      if (found.kind === 'failed') throw found.error;
      const { instance } = found;
      const rival = chosen.get(instance.instanceId);
      if (rival === undefined || rival === node.name) return await this.#write(node, instance, signal);
      const message = `${instance.instanceId} is also the instance of Node ${rival}; delete the Node that does not exist any more`;
      this.#report(node, 'InstanceTaken', message);
    } catch (error) {
      if (signal.aborted) return;
      if (isCloudError(error, 'never', 'credentials')) return this.#report(node, 'CloudRefused', error.message);
      this.#deps.log.warn('a Node could not be brought up to date, will try again', { node: node.name, error });
      this.#retryAfter(node.name, RETRY_MS);
    }
  }

  async #write(node: CloudNode, instance: Instance, signal: AbortSignal): Promise<void> {
    const { kube, nodes, config, clock, events, log, metrics } = this.#deps;
    const object = nodes.get(node.name);
    if (object === undefined || this.#isHeld(node)) return;
    const zone = await this.#zoneOf(instance.zone, signal);
    const nowText = new Date(clock.nowMs()).toISOString().replace(/\.\d+Z$/, 'Z');
    const forms = { ...config, expectsRoutes: config.expectsRoutes || config.routes !== 'none' };
    const done = await writeNode(kube, object, (current) => planNode(current, instance, zone, forms), nowText, signal);
    if (done.kind === 'problem') return this.#report(node, 'AddressInvalid', done.message);
    this.#reports.report(involvedObject(NODES, node), []);
    if (done.kind !== 'initialized') return;
    this.#contests.note(node.uid, '', node, clock.monotonicMs());
    const ageMs = new StampAges(clock).ageMs(node.name, node.createdAt);
    metrics.taintRemovalDelay.observeMs(ageMs);
    metrics.initialSyncDelay.observeMs(ageMs);
    log.info('a Node was initialised', { node: node.name, instanceId: instance.instanceId, zone: instance.zone });
    const involved = involvedObject(NODES, node);
    events.record({ involved, type: 'Normal', reason: 'Synced', message: 'Node synced successfully' });
  }

  /** Reports whether the taint of a Node is not taken off now, as another client keeps putting it back. */
  #isHeld(node: CloudNode): boolean {
    if (!isWaiting(node) || this.#contests.valueOf(node.uid) === undefined) return false;
    const { clock, events } = this.#deps;
    const { waitMs, isNew } = this.#contests.ask(node.uid, true, node, clock.monotonicMs());
    if (isNew) {
      const involved = involvedObject(NODES, node);
      const message = contestText('the taint node.cloudprovider.kubernetes.io/uninitialized');
      events.record({ involved, type: 'Warning', reason: 'FieldContested', message });
    }
    if (waitMs > 0) this.#retryAfter(node.name, waitMs);
    return waitMs > 0;
  }

  /** Asks the cloud for the number of a zone only where one is written. */
  async #zoneOf(name: string, signal: AbortSignal): Promise<Zone> {
    const { config, cloud } = this.#deps;
    if (config.zoneLabels === 'name' && config.providerIdForm === 'tencentcloud') return { name, number: '' };
    const known = this.#zones.get(name);
    if (known !== undefined) return known;
    const zones = await cloud.instances.zones({ ...CONTEXT, signal, timeoutMs: config.cloudTimeoutMs });
    this.#zones = new Map(zones.map((zone) => [zone.name, zone]));
    const zone = this.#zones.get(name);
    if (zone === undefined) throw new Error(`the cloud lists no zone ${name}`);
    return zone;
  }

  #report(node: CloudNode, reason: NodeProblem, message: string) {
    // Its end was noted while the cloud was asked.
    if (this.#deps.nodes.get(node.name) === undefined) return;
    this.#reports.report(involvedObject(NODES, node), [{ reason, message }]);
    this.#retryAfter(node.name, PROBLEM_RETRY_MS);
  }

  #retryAfter(name: string, ms: number): void {
    this.#retryAtMs.set(name, this.#deps.clock.monotonicMs() + ms);
  }
}

/** A kubeadm Node without external cloud provider has no taint, and no providerID either. */
function isWaiting({ isOurs, isUninitialized, providerId }: CloudNode): boolean {
  return isOurs && (isUninitialized || providerId.kind === 'none' || providerId.kind === 'malformed');
}

/** Returns the name of the Node that counts, by instance. */
function chooseByInstance(
  all: readonly CloudNode[],
  found: ReadonlyMap<string, FoundInstance>,
  describedOf: (node: CloudNode) => Instance | undefined,
): ReadonlyMap<string, string> {
  const claims = all.flatMap((node) => {
    const one = found.get(node.name);
    const instance = one?.kind === 'found' ? one.instance : describedOf(node);
    const named = node.providerId.kind === 'instance' ? node.providerId.instanceId : undefined;
    const id = instance?.instanceId ?? named;
    return id === undefined ? [] : [{ id, node, instance }];
  });
  const chosen = [...Map.groupBy(claims, ({ id }) => id)].map(
    ([id, its]) => [id, chooseNode(its)?.node.name ?? ''] as const,
  );
  return new Map(chosen);
}

/** How a write ended; `gone`: another Node has the name, or none. */
type NodeWrite =
  | { readonly kind: 'unchanged' | 'gone' | 'updated' | 'initialized' }
  | { readonly kind: 'problem'; readonly message: string };

const NO_ROUTE_YET = {
  type: 'NetworkUnavailable',
  status: 'True',
  reason: 'NoRouteCreated',
  message: 'Node created without a route',
} as const;

/** Condition, addresses and the rest, each with a repetition or two. */
const MAX_STEPS = 8;

/**
 * Writes to a Node what `planOf` says, the status first: the condition that its network is unavailable has to be there
 * when the taint goes. All else is one guarded write. Idempotent.
 * @throws KubeError CONFLICT when others keep changing the Node; whatever else the client throws
 */
async function writeNode(
  kube: KubeClient,
  object: KubeObject,
  planOf: (node: CloudNode) => NodePlan,
  nowText: string,
  signal: AbortSignal,
): Promise<NodeWrite> {
  const ref = { name: object.metadata.name };
  let current = object;
  let isStatusWritten = false;
  for (let step = 1; ; step++) {
    const node = readCloudNode(current);
    const plan = planOf(node);
    if (plan.kind === 'problem') return plan;
    const { uid, resourceVersion } = node;
    const guard = { uid, resourceVersion };
    try {
      if (plan.isNetworkPending) {
        const condition = { ...NO_ROUTE_YET, lastTransitionTime: nowText, lastHeartbeatTime: nowText };
        const body = { metadata: guard, status: { conditions: [condition] } };
        current = await kube.patch(NODES, ref, { kind: 'strategic', body, subresource: 'status' }, signal);
      } else if (plan.addresses !== undefined) {
        const body = { metadata: guard, status: { addresses: plan.addresses } };
        current = await kube.patch(NODES, ref, { kind: 'merge', body, subresource: 'status' }, signal);
        isStatusWritten = true;
      } else {
        const { metadata = {}, spec } = plan;
        if (spec === undefined && Object.keys(metadata).length === 0)
          return { kind: isStatusWritten ? 'updated' : 'unchanged' };
        const body = { metadata: { ...metadata, ...guard }, ...(spec === undefined ? {} : { spec }) };
        await kube.patch(NODES, ref, { kind: 'merge', body }, signal);
        return { kind: spec?.['taints'] === undefined ? 'updated' : 'initialized' };
      }
      if (step < MAX_STEPS) continue;
    } catch (error) {
      if (!isKubeError(error, 'CONFLICT', 'NOT_FOUND') || step >= MAX_STEPS) throw error;
    }
    const read = await kube.get(NODES, ref, signal);
    if (read === undefined || read.metadata.uid !== uid) return { kind: 'gone' };
    current = read;
    if (step >= MAX_STEPS) return { kind: 'updated' };
  }
}
