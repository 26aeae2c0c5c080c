import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { DIRECT_ACCESS_ANNOTATION } from '../../crd/names.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { BackendNodes } from './backend-nodes.ts';
import { BalancerDirectory } from './balancer-directory.ts';
import { decidePriority } from './decide-priority.ts';
import { decideService } from './decide-service.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { type Baseline, baselineOnRecord } from './find-drift.ts';
import type { PodFollower } from './follow-pods.ts';
import { BalancerKeeper } from './keep-balancer.ts';
import type { GateKeeper } from './keep-gates.ts';
import { RefusedKeeper } from './keep-refused.ts';
import { blocking, type Notice } from './notice.ts';
import { planIngress } from './plan-ingress.ts';
import { listenerNameOf } from './plan-load-balancer.ts';
import type { AddressPublisher } from './publish-addresses.ts';
import { StatusPublisher } from './publish-status.ts';
import { readAnnotations } from './read-annotations.ts';
import { readRecord } from './read-record.ts';
import { type Ingress, readServiceHead, type ServiceHead } from './read-service.ts';
import { groupsKeyOf, releaseBalancer } from './release-balancer.ts';
import type { ServiceSettings } from './served-annotations.ts';
import { describeFailure, isOfGroup, needsPerson } from './service-failure.ts';
import { type ServicePlan, ServicePlanner } from './service-planner.ts';
import { ServiceReports } from './service-reports.ts';
import { settledHashOf } from './settled-hash.ts';
import { ServiceWriter } from './write-service.ts';

/** How often a load balancer is compared with its Service, though nothing has changed. */
const RESYNC_MS = 600_000;
/** After a refusal that the same request would get again. */
const REFUSED_MS = 60_000;
/** The cache has not caught up with a write. */
const CONFLICT_MS = 1_000;

/** What was in order when it was last compared. */
type Settled = {
  readonly desired: string;
  readonly baseline: Baseline;
  readonly loadBalancerId: string;
  readonly ingress: readonly Ingress[];
  /** What its user has to know of it. */
  readonly notices: readonly Notice[];
  readonly untilMs: number;
};

/** The readiness gates, as a Service tells of itself. */
type Gates = Pick<GateKeeper, 'note' | 'fail' | 'recover' | 'forget'>;

/** Brings load balancers in line with Services, one Service at a time. */
export class ServiceSync {
  readonly #deps: ControllerDeps;
  readonly #services: Pick<Informer<KubeObject>, 'get'>;
  readonly #writer: ServiceWriter;
  readonly #reports: ServiceReports;
  readonly #keeper: BalancerKeeper;
  readonly #pods: PodFollower;
  readonly #published: AddressPublisher;
  readonly #gates: Gates;
  readonly #nodes: BackendNodes;
  readonly #planner: ServicePlanner;
  readonly #status: StatusPublisher;
  readonly #refused: RefusedKeeper;
  readonly #directory: BalancerDirectory;
  readonly #settled = new Map<string, Settled>();
  /** By Service that is released: since when nothing of it is found; monotonic milliseconds. */
  readonly #absentSinceMs = new Map<string, number>();

  constructor(
    deps: ControllerDeps,
    services: Pick<Informer<KubeObject>, 'get'>,
    pods: PodFollower,
    gates: Gates,
    published: AddressPublisher,
  ) {
    this.#gates = gates;
    this.#published = published;
    this.#deps = deps;
    this.#pods = pods;
    this.#nodes = new BackendNodes(deps);
    this.#planner = new ServicePlanner(deps, this.#nodes, pods);
    this.#services = services;
    this.#writer = new ServiceWriter(deps.kube);
    this.#reports = new ServiceReports(deps.events, deps.log);
    this.#status = new StatusPublisher(deps, this.#writer, this.#reports);
    this.#keeper = new BalancerKeeper(deps, this.#writer, this.#reports, published);
    this.#refused = new RefusedKeeper(deps, { keeper: this.#keeper, reports: this.#reports, gates, published });
    this.#directory = new BalancerDirectory(deps);
  }

  /** Notes that Nodes have changed what load balancers depend on. */
  nodesChanged(): void {
    this.#nodes.changed();
  }

  /** Withdraws what is reported. */
  close(): void {
    this.#status.close();
  }

  /** Brings one Service nearer to what it asks for. @throws CloudError, KubeError, StepError when it is to be tried again */
  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const object = this.#services.get(key);
    const head = object === undefined ? undefined : readServiceHead(object);
    const role = head === undefined ? 'ignore' : decideService(head, this.#deps.config.loadBalancerClass);
    if (object === undefined || head === undefined || role === 'ignore') {
      this.#forget(key);
      return { kind: 'done' };
    }
    try {
      return role === 'serve' ? await this.#serve(object, head, signal) : await this.#release(object, head, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      if (isKubeError(error, 'CONFLICT', 'NOT_FOUND')) return { kind: 'again', afterMs: CONFLICT_MS };
      const reason = role === 'serve' ? 'SyncLoadBalancerFailed' : 'DeleteLoadBalancerFailed';
      this.#settled.delete(key);
      this.#reports.problems(head, [{ reason, message: describeFailure(error, role) }]);
      if (role === 'serve' && needsPerson(error)) this.#gates.fail(key);
      if (!isCloudError(error, 'never', 'quota', 'credentials')) throw error;
      return { kind: 'again', afterMs: Math.max(error.afterMs, REFUSED_MS) };
    }
  }

  async #serve(object: KubeObject, head: ServiceHead, signal: AbortSignal): Promise<ReconcileResult> {
    const { settings, notices: ofAnnotations, areTargetsKnown } = readAnnotations(head.annotations, head.labels);
    const vpcId = this.#nodes.vpcId;
    const context = this.#contextOf(head, signal);
    const isRefused = ofAnnotations.some(({ blocks }) => blocks);
    if (head.annotations[DIRECT_ACCESS_ANNOTATION] !== undefined && vpcId !== undefined) this.#published.need();
    if (settings.mode === 'skip' || !areTargetsKnown) {
      this.#gates.note(head.key, 'refused');
      this.#settled.delete(head.key);
      await this.#refused.leave(head, ofAnnotations, context);
      return { kind: 'again', afterMs: RESYNC_MS };
    }
    const plan = await this.#planner.plan(object, head, settings, context);
    const notices = [...ofAnnotations, ...plan.notices];
    if (plan.listeners === undefined && plan.afterMs !== undefined) {
      await this.#refused.leave(head, notices, context);
      return { kind: 'again', afterMs: plan.afterMs };
    }
    if (plan.desired === undefined || vpcId === undefined || isRefused)
      return await this.#follow(object, head, { ...plan, notices }, RESYNC_MS, context);
    const result = await this.#bring(
      object,
      head,
      { ...plan, desired: plan.desired, notices },
      settings,
      vpcId,
      context,
    );
    if (result.kind !== 'again' || plan.afterMs === undefined) return result;
    return { kind: 'again', afterMs: Math.min(result.afterMs, plan.afterMs) };
  }

  /** Lets the targets of a Service that is refused follow its backends. `mostMs`: when it is looked at again at the latest. */
  async #follow(
    object: KubeObject,
    head: ServiceHead,
    plan: ServicePlan,
    mostMs: number,
    context: CallContext,
  ): Promise<ReconcileResult> {
    const before = this.#settled.get(head.key)?.baseline;
    this.#settled.delete(head.key);
    const { waitMs, baseline } = await this.#refused.follow(object, head, plan, this.#nodes.vpcId, context, before);
    if (baseline !== undefined) {
      // Not in order: once it is not refused any more it is compared.
      const never = { desired: '', ingress: [], notices: [], untilMs: Number.NEGATIVE_INFINITY };
      this.#settled.set(head.key, { ...never, loadBalancerId: baseline.loadBalancerId, baseline });
    }
    return { kind: 'again', afterMs: Math.min(mostMs, waitMs, plan.afterMs ?? mostMs) };
  }

  /** Brings the load balancer of a Service in line with its plan. */
  async #bring(
    object: KubeObject,
    head: ServiceHead,
    plan: ServicePlan & { readonly desired: DesiredLoadBalancer },
    settings: ServiceSettings,
    vpcId: string,
    context: CallContext,
  ): Promise<ReconcileResult> {
    const { notices } = plan;
    const { signal } = context;
    this.#noteGates(head, plan);
    const text = JSON.stringify([plan.desired, settings.preventLoopback]);
    const settled = this.#settled.get(head.key);
    const isRecorded = readRecord(head).loadBalancerId === settled?.loadBalancerId && head.hasFinalizer;
    if (settled?.desired === text && isRecorded && this.#deps.clock.monotonicMs() < settled.untilMs) {
      this.#gates.recover(head.key);
      await this.#status.publish(object, settled.ingress, [...notices, ...settled.notices], signal);
      return { kind: 'again', afterMs: settled.untilMs - this.#deps.clock.monotonicMs() };
    }
    const resumed = settled === undefined ? await this.#resume(head, plan.desired, text, settings, context) : undefined;
    if (resumed !== undefined) {
      await this.#status.publish(object, resumed.ingress, notices, signal);
      return { kind: 'again', afterMs: resumed.untilMs - this.#deps.clock.monotonicMs() };
    }
    const before = settled?.baseline;
    const urgent = { ...context, priority: decidePriority(before?.desired, plan.desired) };
    let kept: Awaited<ReturnType<BalancerKeeper['keep']>>;
    try {
      kept = await this.#keeper.keep(object, plan.desired, vpcId, urgent, before);
    } catch (error) {
      // No listener was made that the group would have to close.
      if (!isOfGroup(error)) throw error;
      const failure = blocking('SyncLoadBalancerFailed', describeFailure(error, 'serve'));
      return await this.#follow(object, head, { ...plan, notices: [...notices, failure] }, REFUSED_MS, context);
    }
    if (kept.kind === 'again' && kept.isStuck === true) this.#gates.fail(head.key);
    else this.#gates.recover(head.key);
    this.#noteGates(head, plan);
    if (kept.kind === 'again' && kept.notices.some(({ blocks }) => blocks))
      return await this.#follow(
        object,
        head,
        { ...plan, notices: [...notices, ...kept.notices] },
        kept.afterMs,
        context,
      );
    if (kept.kind === 'again') {
      this.#settled.delete(head.key);
      this.#reports.problems(head, [...notices, ...kept.notices]);
      return { kind: 'again', afterMs: kept.afterMs };
    }
    const ingress = planIngress(kept.balancer, settings);
    const { loadBalancerId } = kept.balancer;
    const isSettled = settled?.desired === text && kept.isAsBefore && kept.waitMs === Number.POSITIVE_INFINITY;
    const recorded =
      isSettled && kept.notices.length === 0
        ? await this.#writer.writeSettled(kept.object, settledHashOf(loadBalancerId, plan.desired), signal)
        : kept.object;
    await this.#status.publish(recorded, ingress, [...notices, ...kept.notices], signal);
    const afterMs = Math.min(RESYNC_MS, kept.waitMs);
    const untilMs = this.#deps.clock.monotonicMs() + afterMs;
    const { notices: itsNotices, baseline } = kept;
    this.#settled.set(head.key, { desired: text, loadBalancerId, ingress, notices: itsNotices, untilMs, baseline });
    this.#directory.forgetOld();
    return { kind: 'again', afterMs };
  }

  /** Tells the readiness gates of its Pods what is planned for a Service. */
  #noteGates({ key }: ServiceHead, { desired, unbound }: ServicePlan): void {
    if (desired === undefined || unbound === undefined) {
      this.#gates.forget(key);
      return;
    }
    const refused = this.#keeper.refusedIps(key);
    this.#gates.note(key, { desired, unbound, refused });
  }

  /**
   * Takes up what a former process left in order: what is on record is what is desired, and the load balancer is listed. It
   * is compared within the next period, so that a start reads no listener and no target.
   */
  async #resume(
    head: ServiceHead,
    desired: DesiredLoadBalancer,
    text: string,
    settings: ServiceSettings,
    context: CallContext,
  ): Promise<Settled | undefined> {
    const { loadBalancerId, settled: hash } = readRecord(head);
    if (loadBalancerId === undefined || hash === undefined || !head.hasFinalizer) return undefined;
    if (hash !== settledHashOf(loadBalancerId, desired)) return undefined;
    const balancer = await this.#directory.find(loadBalancerId, context);
    if (balancer === undefined) return undefined;
    const { clock, random } = this.#deps;
    const untilMs = clock.monotonicMs() + RESYNC_MS * random();
    const ingress = planIngress(balancer, settings);
    const settled = {
      desired: text,
      loadBalancerId,
      ingress,
      notices: [],
      untilMs,
      baseline: baselineOnRecord(loadBalancerId, desired),
    };
    this.#settled.set(head.key, settled);
    this.#published.note(
      head.key,
      desired.listeners.flatMap(({ targets = [] }) => targets),
    );
    return settled;
  }

  async #release(object: KubeObject, head: ServiceHead, signal: AbortSignal): Promise<ReconcileResult> {
    if (head.annotations[DIRECT_ACCESS_ANNOTATION] !== undefined) this.#published.need();
    this.#settled.delete(head.key);
    this.#gates.forget(head.key);
    const { clusterId, loadBalancerClass } = this.#deps.config;
    const fresh = await this.#writer.read(head, signal);
    // It may be a load balancer again.
    if (fresh !== undefined && decideService(readServiceHead(fresh), loadBalancerClass) !== 'release')
      return { kind: 'again', afterMs: CONFLICT_MS };
    const released = await releaseBalancer(
      { cloud: this.#deps.cloud, clock: this.#deps.clock, reports: this.#reports, absentSinceMs: this.#absentSinceMs },
      { object: fresh ?? object, clusterId, listenerName: listenerNameOf({ clusterId, service: head }) },
      this.#contextOf(head, signal),
    );
    if (released.kind === 'again') return released;
    await this.#published.release(head.key, signal);
    await this.#writer.forget(fresh ?? object, signal);
    this.#forget(head.key);
    return { kind: 'done' };
  }

  #forget(key: string): void {
    this.#settled.delete(key);
    for (const one of [key, groupsKeyOf(key)]) this.#absentSinceMs.delete(one);
    this.#pods.forget(key);
    this.#gates.forget(key);
    this.#reports.forget(key);
    this.#keeper.forget(key);
    this.#published.forget(key);
  }

  #contextOf({ key: owner }: ServiceHead, signal: AbortSignal): CallContext {
    return { priority: 'warm', owner, signal, timeoutMs: this.#deps.config.cloudTimeoutMs };
  }
}
