import { createHash } from 'node:crypto';
import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type BalancerOwner, ownerOf } from './balancer-owner.ts';
import { decidePriority } from './decide-priority.ts';
import { desiredHashOf } from './desired-hash.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { desiredPlacesOf } from './desired-places.ts';
import { BalancerKeeper } from './keep-balancer.ts';
import { RefusedKeeper } from './keep-refused.ts';
import type { ListenerMemory } from './listener-memory.ts';
import { blocking, type Notice } from './notice.ts';
import { observeLoadBalancer } from './observe-load-balancer.ts';
import type { OwnerAddresses } from './owner-addresses.ts';
import { describeFailure, isOfGroup, needsPerson } from './owner-failure.ts';
import { readOwnerMark } from './owner-mark.ts';
import type { OwnerGates, OwnerPlan } from './owner-plan.ts';
import type { OwnerEvents } from './owner-reports.ts';
import type { OwnerUnit } from './owner-unit.ts';
import { groupsKeyOf, type ReleaseSettings, releaseBalancer, usedGroupsKeyOf } from './release-balancer.ts';
import { StepError } from './run-step.ts';
import { RESYNC_MS, UnitsInOrder } from './units-in-order.ts';
import { UnresolvedCalls } from './unresolved-calls.ts';
import type { OwnerObjects } from './write-owner.ts';

/** The cache has not caught up with a write. */
const CONFLICT_MS = 1_000;
/** After a refusal that the same request would get again. */
const REFUSED_MS = 60_000;

/** What owners of one kind are kept with. */
type SyncParts<H extends BalancerOwner> = {
  readonly objects: OwnerObjects<H>;
  readonly reports: OwnerEvents;
  readonly gates: OwnerGates;
  readonly published: OwnerAddresses;
  readonly memory: ListenerMemory;
  /** The VPC of the cluster; undefined while it is not known. */
  readonly vpcId: () => string | undefined;
};

/** Brings load balancers in line with what is planned for their owners, and remembers what is in order. */
export class OwnerSync<H extends BalancerOwner> {
  readonly #deps: ControllerDeps;
  readonly #parts: SyncParts<H>;
  readonly #calls: UnresolvedCalls;
  readonly #keeper: BalancerKeeper;
  readonly #refused: RefusedKeeper<H>;
  readonly #inOrder: UnitsInOrder<H>;
  /** By owner that is released: since when nothing of it is found; monotonic milliseconds. */
  readonly #absentSinceMs = new Map<string, number>();

  constructor(deps: ControllerDeps, parts: SyncParts<H>) {
    const { objects, reports, gates, published, memory } = parts;
    this.#deps = deps;
    this.#parts = parts;
    this.#calls = new UnresolvedCalls(deps);
    this.#keeper = new BalancerKeeper(deps, objects, reports, published, memory, this.#calls);
    this.#refused = new RefusedKeeper(deps, { keeper: this.#keeper, gates, published, memory });
    this.#inOrder = new UnitsInOrder(deps);
  }

  /** Leaves the load balancer of a unit as it is. @throws CloudError */
  async leave(unit: OwnerUnit<H>, notices: readonly Notice[], context: CallContext): Promise<void> {
    this.#parts.gates.note(unit.key, 'refused');
    this.#inOrder.delete(unit.key);
    await this.#refused.leave(unit, notices, context);
  }

  /** Does what is planned for a unit; without `desired` its targets follow its backends. @throws CloudError, KubeError, StepError */
  async apply(unit: OwnerUnit<H>, plan: OwnerPlan, context: CallContext): Promise<ReconcileResult> {
    const result = await this.#apply(unit, plan, context);
    const heldMs = this.#parts.objects.heldMs(unit.head);
    return result.kind === 'again' ? { kind: 'again', afterMs: Math.min(result.afterMs, heldMs) } : result;
  }

  async #apply(unit: OwnerUnit<H>, plan: OwnerPlan, context: CallContext): Promise<ReconcileResult> {
    const vpcId = this.#parts.vpcId();
    if (plan.listeners === undefined && plan.afterMs !== undefined) {
      await this.#refused.leave(unit, plan.notices, context);
      return { kind: 'again', afterMs: plan.afterMs };
    }
    const { desired } = plan;
    if (desired === undefined || vpcId === undefined) return await this.#follow(unit, plan, RESYNC_MS, context);
    const result = await this.#bring(unit, { ...plan, desired }, vpcId, context);
    if (result.kind !== 'again' || plan.afterMs === undefined) return result;
    return { kind: 'again', afterMs: Math.min(result.afterMs, plan.afterMs) };
  }

  /** Reports that a unit could not be served or released. @returns when to try again. @throws the error, when it is to be tried soon */
  fail(
    unit: Pick<OwnerUnit<H>, 'key' | 'report'>,
    error: unknown,
    work: 'serve' | 'release',
    signal: AbortSignal,
  ): ReconcileResult {
    if (signal.aborted) throw error;
    if (isKubeError(error, 'CONFLICT', 'NOT_FOUND')) return { kind: 'again', afterMs: CONFLICT_MS };
    const reason = work === 'serve' ? 'SyncLoadBalancerFailed' : 'DeleteLoadBalancerFailed';
    this.#inOrder.delete(unit.key);
    unit.report([{ reason, message: describeFailure(error, work, this.#parts.objects.kind) }]);
    if (work === 'serve' && needsPerson(error)) this.#parts.gates.fail(unit.key);
    if (!isCloudError(error, 'never', 'quota', 'credentials')) throw error;
    return { kind: 'again', afterMs: Math.max(error.afterMs, REFUSED_MS) };
  }

  /**
   * Removes what a unit has in the cloud, and then the finalizer of its object.
   * @param settingsOf what annotations say; undefined: it shall have a load balancer after all
   * @throws CloudError, KubeError, StepError
   */
  async release(
    unit: Pick<OwnerUnit<H>, 'key' | 'object' | 'head' | 'listenerName'>,
    settingsOf: (head: H) => ReleaseSettings | undefined,
    context: CallContext,
  ): Promise<ReconcileResult> {
    const { objects, gates, published, reports } = this.#parts;
    const { object, head, listenerName } = unit;
    this.#inOrder.delete(unit.key);
    gates.forget(unit.key);
    const fresh = await objects.read(head, context.signal);
    const current = fresh === undefined ? head : objects.headOf(fresh);
    const settings = settingsOf(current);
    if (settings === undefined) return { kind: 'again', afterMs: CONFLICT_MS };
    const { cloud, clock, config } = this.#deps;
    const released = await releaseBalancer(
      { cloud, clock, reports, calls: this.#calls, absentSinceMs: this.#absentSinceMs },
      { head: current, settings, clusterId: config.clusterId, ...this.#parts.memory.claimOf(listenerName) },
      context,
    );
    if (released.kind === 'again') {
      const message = this.#calls.describeOverdue(listenerName);
      if (message !== undefined) reports.problems(head, [{ reason: 'DeleteLoadBalancerFailed', message }]);
      return released;
    }
    await published.release(head.key, context.signal);
    await objects.forget(fresh ?? object, context.signal);
    return { kind: 'done' };
  }

  /**
   * Writes the mark of an owner without one, of which the cloud has something: it is to be released then.
   * @returns undefined: the cloud has nothing. @throws CloudError, KubeError
   */
  async restoreMark(
    { object, head, listenerName }: Pick<OwnerUnit<H>, 'object' | 'head' | 'listenerName'>,
    { existedLbId, poolOwner }: ReleaseSettings,
    context: CallContext,
  ): Promise<KubeObject | undefined> {
    const owner = ownerOf(this.#deps.config.clusterId, head.uid, head.kind);
    const { loadBalancerId } = readOwnerMark(head);
    const search = { owner, loadBalancerId, otherIds: [existedLbId], poolOwner };
    const claim = this.#parts.memory.claimOf(listenerName);
    const view = await observeLoadBalancer(this.#deps, { ...search, ...claim }, context);
    if (view.kind === 'absent') return undefined;
    if (view.kind === 'pending') throw new StepError('what the cloud has of it is not known yet');
    const { isOwn, listeners, balancer } = view.observed;
    if (!isOwn && listeners.every(({ name }) => name !== listenerName)) return undefined;
    const mark = { serial: 1, loadBalancerId: balancer.loadBalancerId };
    return await this.#parts.objects.writeMark(object, mark, context.signal);
  }

  /** Notes that no former process has sent anything for listeners. */
  begin(listenerName: string): void {
    this.#calls.begin(listenerName);
  }

  /** Reports whether the load balancer of a unit was as planned when it was compared last. */
  isInOrder(key: string): boolean {
    return (this.#inOrder.get(key)?.desired ?? '') !== '';
  }

  /** Forgets a unit. */
  forget(key: string): void {
    const { gates } = this.#parts;
    this.#inOrder.delete(key);
    gates.forget(key);
  }

  /** Forgets an owner, but for what is reported. */
  forgetOwner(key: string): void {
    const { published } = this.#parts;
    for (const one of [key, groupsKeyOf(key), usedGroupsKeyOf(key)]) this.#absentSinceMs.delete(one);
    this.#keeper.forget(key);
    published.forget(key);
  }

  /** Lets the targets of a unit that is refused follow its backends. `mostMs`: when it is looked at again at the latest. */
  async #follow(unit: OwnerUnit<H>, plan: OwnerPlan, mostMs: number, context: CallContext): Promise<ReconcileResult> {
    const before = this.#inOrder.get(unit.key)?.baseline;
    // Before the VPC is known nothing was looked at.
    if (this.#parts.vpcId() !== undefined) this.#inOrder.delete(unit.key);
    const { waitMs, baseline } = await this.#refused.follow(unit, plan, this.#parts.vpcId(), context, before);
    // Not in order: once it is not refused any more it is compared.
    if (baseline !== undefined) this.#inOrder.noteBaseline(unit.key, baseline);
    return { kind: 'again', afterMs: Math.min(mostMs, waitMs, plan.afterMs ?? mostMs) };
  }

  /** Brings the load balancer of a unit in line with its plan. */
  async #bring(
    unit: OwnerUnit<H>,
    plan: OwnerPlan & { readonly desired: DesiredLoadBalancer },
    vpcId: string,
    context: CallContext,
  ): Promise<ReconcileResult> {
    const { notices } = plan;
    const { key, head, object } = unit;
    const { gates, objects } = this.#parts;
    const { clock } = this.#deps;
    this.#noteGates(unit, plan);
    // A plan may have thousands of targets: its hash is kept.
    const text = createHash('sha256')
      .update(JSON.stringify([plan.desired, unit.addressKey]))
      .digest('base64');
    const known = this.#inOrder.get(key);
    const isRecorded = readOwnerMark(head).loadBalancerId === known?.loadBalancerId && head.hasFinalizer;
    if (known?.desired === text && isRecorded && clock.monotonicMs() < known.untilMs) {
      gates.recover(key);
      await unit.publish(object, known.addresses, [...notices, ...known.notices], context.signal);
      return { kind: 'again', afterMs: known.untilMs - clock.monotonicMs() };
    }
    const resumed =
      known === undefined ? await this.#inOrder.resume(unit, plan.desired, text, vpcId, context) : undefined;
    if (resumed !== undefined) {
      this.#parts.published.note(
        head.key,
        desiredPlacesOf(plan.desired).flatMap(({ targets = [] }) => targets),
      );
      await unit.publish(object, resumed.addresses, notices, context.signal);
      return { kind: 'again', afterMs: resumed.untilMs - clock.monotonicMs() };
    }
    const before = known?.baseline;
    const urgent = { ...context, priority: decidePriority(before?.desired, plan.desired) };
    let kept: Awaited<ReturnType<BalancerKeeper['keep']>>;
    try {
      kept = await this.#keeper.keep(object, plan.desired, vpcId, urgent, before);
    } catch (error) {
      // No listener was made that the group would have to close.
      if (!isOfGroup(error)) throw error;
      const failure = blocking('SyncLoadBalancerFailed', describeFailure(error, 'serve', head.kind));
      return await this.#follow(unit, { ...plan, notices: [...notices, failure] }, REFUSED_MS, context);
    }
    if (kept.kind === 'again' && kept.isStuck === true) gates.fail(key);
    else gates.recover(key);
    this.#noteGates(unit, plan);
    if (kept.kind === 'again' && kept.isUnserved === true)
      await unit.publish(object, [], [...notices, ...kept.notices], context.signal);
    if (kept.kind === 'again' && kept.notices.some(({ blocks }) => blocks))
      return await this.#follow(unit, { ...plan, notices: [...notices, ...kept.notices] }, kept.afterMs, context);
    if (kept.kind === 'again') {
      this.#inOrder.delete(key);
      const { waiting } = kept;
      const all = [...notices, ...kept.notices];
      if (waiting === undefined) unit.report(all);
      else {
        unit.waits?.(waiting.observed);
        const waitingAt = unit.addressesOf(waiting.observed.balancer, clashOf(plan.desired, kept.notices));
        await unit.publish(waiting.object, waitingAt, all, context.signal);
      }
      return { kind: 'again', afterMs: kept.afterMs };
    }
    const addresses = unit.addressesOf(kept.balancer, clashOf(plan.desired, kept.notices));
    const { loadBalancerId } = kept.balancer;
    const isInOrder = known?.desired === text && kept.isAsBefore && kept.waitMs === Number.POSITIVE_INFINITY;
    const recorded =
      isInOrder && kept.notices.length === 0 && !this.#calls.isUnresolved(unit.listenerName)
        ? await objects.writeHash(kept.object, desiredHashOf(loadBalancerId, plan.desired), context.signal)
        : kept.object;
    await unit.publish(recorded, addresses, [...notices, ...kept.notices], context.signal);
    const { notices: itsNotices, baseline } = kept;
    const now = { desired: text, loadBalancerId, addresses, notices: itsNotices, baseline };
    return { kind: 'again', afterMs: this.#inOrder.note(key, now, kept.waitMs) };
  }

  /** Tells the readiness gates of its Pods what is planned for a unit. */
  #noteGates({ key, head }: OwnerUnit<H>, { desired, unbound }: OwnerPlan): void {
    const { gates } = this.#parts;
    if (desired === undefined || unbound === undefined) gates.forget(key);
    else gates.note(key, { desired, unbound, refused: this.#keeper.refusedIps(head.key) });
  }
}

/** Returns whether listeners of others have ports of a load balancer's owner; undefined: none. */
function clashOf(
  { listeners, ruleListeners = [] }: DesiredLoadBalancer,
  notices: readonly Notice[],
): 'some' | 'all' | undefined {
  const clashes = notices.filter(({ reason }) => reason === 'ListenerClash').length;
  if (clashes === 0) return undefined;
  return clashes < listeners.length + ruleListeners.length ? 'some' : 'all';
}
