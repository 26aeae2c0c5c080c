import type { CallContext } from '../../cloud/cloud.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import { OWNER_TAG } from '../../crd/cloud-tags.ts';
import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { LastReports } from '../../kube/reporter.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type BalancerOwner, type OwnerKind, type OwnerReports, type OwnerWriter, ownerOf } from './balancer-owner.ts';
import { BalancerComparer } from './compare-balancer.ts';
import { BalancerCreator } from './create-balancer.ts';
import { SourceGroupCreator } from './create-source-group.ts';
import { decideAdoption } from './decide-adoption.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { desiredListenersOf } from './desired-places.ts';
import { withSourceGroup } from './diff-security-groups.ts';
import { type Baseline, baselineOf } from './find-drift.ts';
import { type DriftDecision, DriftFinder } from './keep-drift.ts';
import type { ListenerMemory } from './listener-memory.ts';
import type { LoadBalancerStep } from './load-balancer-step.ts';
import { blocking, type Notice, remark } from './notice.ts';
import { observeLoadBalancer } from './observe-load-balancer.ts';
import { allTargetsOf, type ObservedLoadBalancer } from './observed-load-balancer.ts';
import type { OwnerAddresses } from './owner-addresses.ts';
import { readOwnerMark } from './owner-mark.ts';
import { existingIdOf, OwnerMarkWriter } from './owner-mark-writer.ts';
import { refuseForeignGroups } from './refuse-foreign-groups.ts';
import { RefusedSteps, withKnownPlaces } from './refused-steps.ts';
import { StepError } from './run-step.ts';
import { takeSteps } from './take-steps.ts';
import type { UnresolvedCalls } from './unresolved-calls.ts';

/** How far a load balancer is. */
type KeepResult =
  | {
      readonly kind: 'kept';
      readonly object: KubeObject;
      readonly balancer: LoadBalancer;
      readonly notices: readonly Notice[];
      /** Until a target has drained, one that the cloud refused is tried again, or a task is asked for; infinite when none waits. */
      readonly waitMs: number;
      /** What later changes of others are compared with. */
      readonly baseline: Baseline;
      /** Whether nothing was changed, no other client had changed anything, and no listener without a known owner leads to a Pod. */
      readonly isAsBefore: boolean;
    }
  | KeepAgain;

type KeepAgain = {
  readonly kind: 'again';
  readonly afterMs: number;
  readonly notices: readonly Notice[];
  /** Whether the cloud lets it be neither changed nor read until a person does something. */
  readonly isStuck?: true;
  /** Whether the owner is refused the load balancer and has no listener on it: it has no address of it either. */
  readonly isUnserved?: true;
  /** Present when all is done but for what waits until new targets are healthy: a redirect, a deletion. */
  readonly waiting?: { readonly object: KubeObject; readonly observed: ObservedLoadBalancer };
};

/** Each round reads the load balancer, and takes the steps to the desired one. */
const MAX_ROUNDS = 5;
const SOON_MS = 2_000;
const ASK_AGAIN_MS = 20_000;
const REFUSED_MS = 60_000;
/** A load balancer is made in seconds. */
const MADE_MS = 60_000;

/** Makes load balancers what is desired. What is made is on record before. */
export class BalancerKeeper {
  readonly #deps: ControllerDeps;
  readonly #reports: OwnerReports;
  readonly #marks: OwnerMarkWriter;
  readonly #creator: BalancerCreator;
  readonly #comparer: BalancerComparer;
  readonly #refusedSteps: RefusedSteps;
  readonly #groups: SourceGroupCreator;
  readonly #drift: DriftFinder;
  readonly #published: OwnerAddresses;
  readonly #memory: ListenerMemory;
  readonly #calls: UnresolvedCalls;
  readonly #kind: OwnerKind;
  /** By owner: since when its load balancer is being made, or is not known; monotonic milliseconds. */
  readonly #pendingSinceMs = new Map<string, number>();
  /** By owner: listeners of others that are in the log as unread. */
  readonly #loggedUnread = new LastReports();

  constructor(
    deps: ControllerDeps,
    writer: OwnerWriter,
    reports: OwnerReports,
    published: OwnerAddresses,
    memory: ListenerMemory,
    calls: UnresolvedCalls,
  ) {
    this.#calls = calls;
    this.#published = published;
    this.#memory = memory;
    this.#kind = writer.kind;
    this.#deps = deps;
    this.#reports = reports;
    this.#marks = new OwnerMarkWriter(writer);
    this.#creator = new BalancerCreator(deps, writer, reports);
    this.#comparer = new BalancerComparer(deps, published);
    this.#refusedSteps = new RefusedSteps(deps.clock);
    this.#groups = new SourceGroupCreator(deps, this.#marks);
    this.#drift = new DriftFinder(deps, writer.kind, reports);
  }

  /**
   * Compares and changes the load balancer of an owner until nothing is left to do. Idempotent.
   * @param baseline what was in force when it was compared last; undefined: not known
   * @throws CloudError, KubeError, StepError when it is to be tried again
   */
  async keep(
    object: KubeObject,
    desired: DesiredLoadBalancer,
    vpcId: string,
    context: CallContext,
    baseline?: Baseline,
  ): Promise<KeepResult> {
    try {
      return await this.#keep(object, desired, vpcId, context, baseline);
    } finally {
      if (!context.signal.aborted) this.#drift.reportOpen(this.#marks.headOf(object));
    }
  }

  async #keep(
    object: KubeObject,
    desired: DesiredLoadBalancer,
    vpcId: string,
    context: CallContext,
    baseline: Baseline | undefined,
  ): Promise<KeepResult> {
    let current = object;
    let drift: DriftDecision | undefined;
    for (let round = 1; round <= MAX_ROUNDS; round++) {
      const head = this.#marks.headOf(current);
      this.#calls.see(desired.listenerName, readOwnerMark(head), head.hasFinalizer);
      const view = await this.#observe(head, desired, context);
      if (view.kind === 'pending') return this.#wait(head.key, view.loadBalancerId);
      this.#pendingSinceMs.delete(head.key);
      const observed = view.kind === 'found' ? view.observed : undefined;
      if (observed !== undefined && isOfOther(head, desired, observed, this.#deps.config.clusterId)) {
        current = await this.#marks.restart(current, context.signal);
        continue;
      }
      const wanted = withSourceGroup(desired, observed);
      const held = this.#adopt(head, desired, observed, vpcId) ?? this.#noteFound(head, observed, desired);
      if (held !== undefined) return held;
      drift =
        drift === undefined
          ? this.#drift.decide(head, wanted, observed, baseline)
          : this.#drift.decideAgain(head, drift, observed);
      const leavesGroups = drift.left.some(({ field }) => field === 'securityGroupIds');
      // The group may have been made in a round before.
      const target = leavesGroups ? drift.desired : withSourceGroup(drift.desired, observed);
      const diff = await this.#comparer.compare(head.key, target, observed, context.signal);
      // The lists of the nodes are being read.
      if (diff === undefined) return again(SOON_MS);
      const steps = withKnownPlaces(this.#refusedSteps.open(head.key, diff.steps), observed, desired);
      const [first] = steps;
      const moved = await this.#move(current, observed, first, desired, context);
      if (moved !== undefined) {
        if ('kind' in moved) return moved;
        current = moved.object;
        continue;
      }
      const refused = observed === undefined ? [] : this.#refusalsOf(head.key, observed.balancer.loadBalancerId);
      const setsGroups = steps.some(({ kind }) => kind === 'setSecurityGroups');
      const ofGroups = setsGroups ? await refuseForeignGroups(this.#deps, head, desired, context) : [];
      if (ofGroups === undefined) return again(SOON_MS);
      const notices = [...diff.notices, ...drift.notices, ...refused, ...ofGroups];
      if (notices.some(({ blocks }) => blocks)) return again(REFUSED_MS, notices);
      if (observed === undefined) {
        const made = await this.#create(current, first, context);
        if ('kind' in made) return { ...made, notices: [...notices, ...made.notices] };
        current = made.object;
        continue;
      }
      current = await this.#marks.ensure(current, observed, context.signal);
      if (first?.kind === 'createSecurityGroup') {
        const made = await this.#groups.create(current, first.spec, context);
        if (made === undefined) return again(ASK_AGAIN_MS, notices);
        current = made;
        continue;
      }
      const noted = await this.#groups.note(current, desired, observed, context.signal);
      current = noted.object;
      if (first === undefined && (diff.held ?? diff.awaited) !== undefined) {
        const waits = await this.#comparer.waitForSuccessors(head.key, observed, diff, context);
        if (waits === undefined) continue;
        const waiting = { object: current, observed };
        return { ...again(waits.afterMs, [...notices, ...waits.notices]), waiting };
      }
      if (first === undefined) {
        const { afterMs: waitMs, notices: more, isDone } = this.#comparer.finish(head.key, observed);
        if (!isDone) return again(waitMs, notices);
        // What is refused is set again later.
        if (desired.followsOnly !== true) this.#drift.reportOutcome(head, observed);
        const isAsBefore = round === 1 && drift.drifts.length === 0 && !mayLeadToPods(observed);
        const next = baselineOf(wanted, observed, drift.left);
        const kept = { object: current, balancer: observed.balancer, baseline: next, isAsBefore };
        const tasksMs = await this.#calls.follow(desired.listenerName, context);
        const leastMs = Math.min(waitMs, noted.waitMs, tasksMs, this.#refusedSteps.nextMs(head.key));
        return { kind: 'kept', ...kept, waitMs: leastMs, notices: [...notices, ...more] };
      }
      current = await this.#marks.clearHash(current, context.signal);
      await this.#take(head, observed, steps, desired.listenerName, context);
      if (steps.some(({ kind }) => kind === 'delete'))
        current = await this.#marks.next(current, desired.source, context.signal);
    }
    throw new StepError('the load balancer keeps changing: another program writes it too');
  }

  /** The addresses that are no targets of an owner though it asks for them. */
  refusedIps(key: string): readonly string[] {
    return this.#comparer.refusedIps(key);
  }

  /** Forgets an owner. */
  forget(key: string): void {
    this.#memory.forget({ kind: this.#kind, key });
    this.#drift.forget(key);
    this.#refusedSteps.forget(key);
    this.#comparer.forget(key);
    this.#pendingSinceMs.delete(key);
    this.#groups.forget(key);
    this.#loggedUnread.forget(key);
  }

  #refusalsOf(key: string, loadBalancerId: string): readonly Notice[] {
    return [...this.#comparer.refused.notices(key, loadBalancerId), ...this.#refusedSteps.notices(key, loadBalancerId)];
  }

  #wait(key: string, loadBalancerId: string | undefined): KeepAgain {
    const nowMs = this.#deps.clock.monotonicMs();
    const sinceMs = this.#pendingSinceMs.get(key) ?? nowMs;
    this.#pendingSinceMs.set(key, sinceMs);
    if (nowMs - sinceMs < MADE_MS) return again(SOON_MS);
    const what = loadBalancerId ?? 'the list of the load balancers';
    const why = loadBalancerId === undefined ? 'is not complete' : 'is not running';
    const message = `${what} ${why}, as the cloud says, for more than a minute; look at it in the console. It is looked at again by itself`;
    return { ...again(ASK_AGAIN_MS, [remark('SyncLoadBalancerFailed', message)]), isStuck: true };
  }

  #observe(head: BalancerOwner, desired: DesiredLoadBalancer, context: CallContext) {
    const { source, listenerName, sourceGroup } = desired;
    const owner = ownerOf(this.#deps.config.clusterId, head.uid, head.kind);
    const mark = readOwnerMark(head);
    // Without a mark a group may be there all the same.
    const isLost = mark.serial === 0 && source.kind === 'own';
    const looksForGroups = sourceGroup !== undefined || mark.sourceGroup === true || isLost;
    const claim = this.#memory.claimOf(listenerName, desiredListenersOf(desired));
    const ids = { loadBalancerId: mark.loadBalancerId, otherIds: [existingIdOf(source)] };
    return observeLoadBalancer(this.#deps, { owner, ...claim, ...ids, looksForGroups }, context);
  }

  /** Decides whether an existing load balancer may be used. @returns why not */
  #adopt(
    { kind, annotations }: BalancerOwner,
    { source, listenerName }: DesiredLoadBalancer,
    observed: ObservedLoadBalancer | undefined,
    vpcId: string,
  ): KeepAgain | undefined {
    if (source.kind !== 'existing' || observed?.balancer.loadBalancerId !== source.loadBalancerId) return undefined;
    const { kind: _, ...asked } = source;
    const refusal = decideAdoption(observed, { ...asked, kind, clusterId: this.#deps.config.clusterId, vpcId });
    if (refusal === undefined) return undefined;
    const { balancer, listeners } = observed;
    // What another controller wrote into the status stays: it may be at work on a load balancer of its own.
    const isWritten = annotations[SERVICE_ANNOTATION.address] !== undefined || balancer.tags[OWNER_TAG] !== undefined;
    const isUnserved = isWritten && listeners.every(({ name }) => name !== listenerName);
    return { ...again(REFUSED_MS, [refusal]), ...(isUnserved ? { isUnserved } : {}) };
  }

  /** @returns what holds all but the targets of the owner, where a listener of its own cannot be read */
  #noteFound(
    { key }: BalancerOwner,
    observed: ObservedLoadBalancer | undefined,
    desired: DesiredLoadBalancer,
  ): KeepAgain | undefined {
    if (observed === undefined) return undefined;
    const { loadBalancerId } = observed.balancer;
    this.#comparer.note(key, desired, observed);
    this.#memory.note({ kind: this.#kind, key }, desired.listenerName, observed);
    this.#published.note(key, allTargetsOf(observed), observed.unreadIds);
    this.#creator.found(loadBalancerId);
    return this.#unreadOf(key, observed, desired);
  }

  /** What is not known is not changed: with a listener of the owner only targets follow; one of another client is left and in the log. */
  #unreadOf(
    key: string,
    observed: ObservedLoadBalancer,
    { listenerName, followsOnly }: DesiredLoadBalancer,
  ): KeepAgain | undefined {
    const { loadBalancerId } = observed.balancer;
    const unread = observed.listeners.filter((one) => one.unread !== undefined);
    const own = unread.find(({ name }) => name === listenerName);
    if (own !== undefined && followsOnly !== true) {
      const { listenerId, protocol, port } = own;
      const message = `${listenerId} (${protocol}/${port}) of ${loadBalancerId} cannot be read, and is not changed: ${own.unread}. Look at it in the console; it is looked at again by itself`;
      return { ...again(REFUSED_MS, [blocking('SyncLoadBalancerFailed', message)]), isStuck: true };
    }
    const ofOthers = unread.filter(({ name }) => name !== listenerName);
    const reports = ofOthers.map(({ listenerId, unread: why }) => ({ loadBalancerId, listenerId, detail: why }));
    for (const about of this.#loggedUnread.note(key, reports) ?? []) {
      this.#deps.log.warn('a listener of another client cannot be read, and is left as it is', about);
    }
    return undefined;
  }

  /**
   * Writes which load balancer is next, when the one on record is released and another one is asked for: nothing may be made on
   * the former one any more. @returns undefined when none is. @throws CloudError, KubeError
   */
  async #move(
    object: KubeObject,
    observed: ObservedLoadBalancer | undefined,
    first: LoadBalancerStep | undefined,
    desired: DesiredLoadBalancer,
    context: CallContext,
  ): Promise<{ readonly object: KubeObject } | KeepAgain | undefined> {
    if (!this.#marks.isReleased(object, observed, first, desired)) return undefined;
    const stays = observed !== undefined && !observed.isOwn;
    const unresolvedMs = stays ? await this.#calls.resolve(desired.listenerName, context) : 0;
    const overdue = this.#calls.describeOverdue(desired.listenerName);
    const notices = overdue === undefined ? [] : [remark('SyncLoadBalancerFailed', overdue)];
    if (unresolvedMs > 0) return again(unresolvedMs, notices);
    return { object: await this.#marks.next(object, desired.source, context.signal) };
  }

  /** Makes the load balancer, unless one of which is on record may still be found. @throws CloudError, KubeError, StepError */
  async #create(
    object: KubeObject,
    first: LoadBalancerStep | undefined,
    context: CallContext,
  ): Promise<{ readonly object: KubeObject } | KeepAgain> {
    const head = this.#marks.headOf(object);
    const { loadBalancerId } = readOwnerMark(head);
    if (first?.kind !== 'create') return again(SOON_MS);
    if (loadBalancerId !== undefined) {
      if (!this.#creator.isLost(loadBalancerId)) return again(ASK_AGAIN_MS);
      const lost = this.#drift.decideLost(head, loadBalancerId);
      if (lost !== undefined) return again(REFUSED_MS, [lost]);
    }
    const owner = ownerOf(this.#deps.config.clusterId, head.uid, head.kind);
    const made = await this.#creator.create(object, first, owner, context);
    return made === undefined ? again(SOON_MS) : { object: made };
  }

  async #take(
    head: BalancerOwner,
    observed: ObservedLoadBalancer,
    steps: Parameters<typeof takeSteps>[2],
    listenerName: string,
    context: CallContext,
  ): Promise<void> {
    const taking = {
      cloud: this.#deps.cloud,
      calls: this.#calls,
      refused: this.#comparer.refused,
      refusedSteps: this.#refusedSteps,
      service: head.key,
      listenerName,
    };
    const { summary, areTargets, refusals } = await takeSteps(taking, observed, steps, context);
    if (refusals.length > 0) return;
    const reason = areTargets ? 'UpdatedLoadBalancer' : 'EnsuredLoadBalancer';
    this.#reports.progress(head, { reason, message: `${observed.balancer.loadBalancerId}: ${summary}` });
  }
}

/**
 * Reports whether the mark of an owner, of a release that wrote no uid, is that of another object: the load balancer was made
 * for another one of this cluster, and has no listener of this one.
 */
function isOfOther(
  head: BalancerOwner,
  { source, listenerName }: DesiredLoadBalancer,
  { balancer, isOwn, listeners }: ObservedLoadBalancer,
  clusterId: string,
): boolean {
  const { uid, loadBalancerId } = readOwnerMark(head);
  if (uid !== undefined || loadBalancerId !== balancer.loadBalancerId || isOwn) return false;
  if (existingIdOf(source) === loadBalancerId || balancer.tags[OWNER_TAG]?.startsWith(`${clusterId}/`) !== true)
    return false;
  return listeners.every(({ name }) => name !== listenerName);
}

/** Reports whether a listener without a known owner leads to a Pod, as far as it was read. */
function mayLeadToPods({ otherTargets = [], unreadIds = [] }: ObservedLoadBalancer): boolean {
  return unreadIds.length > 0 || otherTargets.some(({ instanceId }) => instanceId === undefined);
}

function again(afterMs: number, notices: readonly Notice[] = []): KeepAgain {
  return { kind: 'again', afterMs, notices };
}
