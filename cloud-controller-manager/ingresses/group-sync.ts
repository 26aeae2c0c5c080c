import type { CallContext } from '../../cloud/cloud.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { groupListenerNameOf } from '../balancers/balancer-owner.ts';
import type { Notice } from '../balancers/notice.ts';
import type { OwnerAddresses } from '../balancers/owner-addresses.ts';
import type { OwnerGates } from '../balancers/owner-plan.ts';
import type { OwnerEvents } from '../balancers/owner-reports.ts';
import type { OwnerSync } from '../balancers/owner-sync.ts';
import type { OwnerUnit } from '../balancers/owner-unit.ts';
import type { StatusPublisher } from '../balancers/publish-status.ts';
import type { TargetQuota } from '../balancers/target-quota.ts';
import { RESYNC_MS } from '../balancers/units-in-order.ts';
import type { OwnerObjects } from '../balancers/write-owner.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { decideIngress } from './decide-ingress.ts';
import { isJoined } from './decide-membership.ts';
import { findMembers, type Member, type Members, namespaceOfGroup } from './find-members.ts';
import { GroupClaims } from './group-claims.ts';
import { GroupReservations } from './group-reservations.ts';
import { INGRESSES_BY } from './ingress-indexes.ts';
import type { IngressPlanner } from './ingress-planner.ts';
import type { CertificateUploads } from './keep-certificates.ts';
import { namedIdsOf, noticesOfRefused, placeCertificates, withRetry } from './place-certificates.ts';
import { hasOtherRules, keysOf, planGroup, planOf } from './plan-group.ts';
import { isStarting, type PlannedMember, planMember } from './plan-member.ts';
import { MAX_RULES, planAddresses } from './plan-unit.ts';
import { readAnnotations } from './read-annotations.ts';
import type { IngressHead } from './read-ingress.ts';
import type { RuleClaim } from './resolve-clashes.ts';

/** What groups are kept with. */
type GroupParts = {
  readonly ingresses: Pick<Informer<KubeObject>, 'byIndex'>;
  readonly classes: Parameters<typeof decideIngress>[1];
  readonly gates: Pick<OwnerGates, 'note'>;
  readonly published: OwnerAddresses;
  readonly quota: TargetQuota;
  readonly planner: IngressPlanner;
  readonly certificates: Pick<CertificateUploads, 'ensure' | 'forget'>;
  readonly objects: OwnerObjects<IngressHead>;
  readonly reports: OwnerEvents;
  readonly status: StatusPublisher<IngressHead>;
  readonly sync: OwnerSync<IngressHead>;
};

type Group = { readonly unitKey: string; readonly loadBalancerId: string; readonly listenerName: string };

/** How far a group was brought. `unserved`: none of its Ingresses has rules that stay. */
type Brought =
  | { readonly kind: 'unserved' }
  | { readonly kind: 'served'; readonly result: ReconcileResult; readonly isFree: boolean };

/** Rules are being deleted; when to look again. */
const LEAVING_MS = 2_000;
/** What one Ingress depends on is waited for so long; then the others are served. */
const STARTING_MS = 15_000;
const AVOIDED_MS = 600_000;

/**
 * Keeps groups of Ingresses: their rules are on the listeners of one load balancer, whose name is that of the group. The
 * oldest Ingress has the mark. One that leaves keeps its finalizer until its rules are gone.
 */
export class GroupSync {
  readonly #deps: ControllerDeps;
  readonly #parts: GroupParts;
  readonly #claims = new GroupClaims();
  readonly #reservations: GroupReservations;
  /** By unit: since when it is looked at; monotonic milliseconds. */
  readonly #sinceMs = new Map<string, number>();
  /** By uid: until when an Ingress does not have the mark of its group; monotonic milliseconds. */
  readonly #avoidedUntilMs = new Map<string, number>();

  constructor(deps: ControllerDeps, parts: GroupParts) {
    this.#deps = deps;
    this.#parts = parts;
    this.#reservations = new GroupReservations(deps);
  }

  /** Brings a group nearer to what its Ingresses ask for. @throws CloudError, KubeError, StepError when it is to be tried again */
  async reconcile(unitKey: string, loadBalancerId: string, signal: AbortSignal): Promise<ReconcileResult> {
    const objects = this.#parts.ingresses.byIndex(INGRESSES_BY.unit, unitKey);
    const { refused, ...members } = findMembers(objects, this.#parts.classes, loadBalancerId);
    for (const { head, ofClass } of refused) this.#parts.reports.problems(head, ofClass);
    const all = [...members.staying, ...members.leaving];
    const report: OwnerUnit<IngressHead>['report'] = (problems) => {
      for (const { head } of all) this.#parts.reports.problems(head, problems);
    };
    const listenerName = groupListenerNameOf(this.#deps.config.clusterId, loadBalancerId);
    const { cloudTimeoutMs: timeoutMs } = this.#deps.config;
    const owner = namespaceOfGroup(objects);
    const context: CallContext = { priority: 'warm', owner, signal, timeoutMs };
    let work: 'serve' | 'release' = 'serve';
    try {
      const brought = await this.#bring({ unitKey, loadBalancerId, listenerName }, members, context);
      if (brought.kind === 'served') return await this.#endSome(unitKey, members, brought, signal);
      work = 'release';
      return await this.#release({ unitKey, loadBalancerId, listenerName }, members, context);
    } catch (error) {
      return this.#parts.sync.fail({ key: unitKey, report }, error, work, signal);
    }
  }

  async #bring(group: Group, members: Members, context: CallContext): Promise<Brought> {
    const { staying, leaving } = members;
    const hasRules = staying.some(({ membership }) => membership !== 'left');
    if (!hasRules && leaving.length === 0) return { kind: 'unserved' };
    const isBegun = [...staying, ...leaving].some(({ head }) => isJoined(head) || head.hasFinalizer);
    if (!isBegun) this.#parts.sync.begin(group.listenerName);
    const refuse = await this.#reservations.of(group.loadBalancerId, context);
    const parts = { ...this.#parts, claims: this.#claims, refuse };
    const planned: PlannedMember[] = [];
    for (const member of staying) planned.push(await planMember(parts, member, group.loadBalancerId, context));
    const hasLeft = this.#claims.left(group.unitKey).length > 0;
    const leader =
      planned.find((one) => isJoined(one.head) && one.plan.desired !== undefined && !this.#isAvoided(one.head)) ??
      planned.find(({ head, membership }) => isJoined(head) && membership !== 'left') ??
      (hasLeft ? leaving.find(({ head }) => isJoined(head)) : undefined) ??
      planned.find(({ head }) => isJoined(head));
    if (this.#isNew(group.unitKey) && planned.some(({ plan }) => isStarting(plan))) {
      const afterMs = Math.min(...planned.flatMap(({ plan }) => plan.afterMs ?? []));
      return { kind: 'served', result: { kind: 'again', afterMs }, isFree: false };
    }
    if (leader === undefined) {
      for (const { head, notices } of planned) this.#parts.reports.problems(head, notices);
      return { kind: 'unserved' };
    }
    try {
      return await this.#serve(group, { planned, leaving, leader }, context);
    } catch (error) {
      if (isKubeError(error)) this.#avoid(leader.head);
      throw error;
    } finally {
      // The targets of the group are those of each of its Ingresses: the one that is read for all may go.
      for (const { head } of [...planned, ...leaving])
        if (head.key !== leader.head.key && isJoined(head)) this.#parts.published.share(leader.head.key, head.key);
    }
  }

  async #serve(
    { unitKey, loadBalancerId, listenerName }: Group,
    { planned, leaving, leader }: { planned: readonly PlannedMember[]; leaving: readonly Member[]; leader: Member },
    context: CallContext,
  ): Promise<Brought> {
    const { certificates, quota, reports, status, sync } = this.#parts;
    const maxRules = await quota.rules(context);
    const claims: RuleClaim[] = planned.map(({ head, claimed, former, isUnknown }) => ({
      ...{ ingress: head, isGrouped: true, listeners: claimed, ...(former === undefined ? {} : { former }) },
      ...(isUnknown ? { role: 'passive' as const } : {}),
    }));
    claims.push(...this.#claims.left(unitKey));
    const ofStaying = planGroup(claims, maxRules ?? MAX_RULES);
    const { listeners, noticesOf, refused } = ofStaying;
    // What it has is still what it asked for before, known or not.
    for (const { head, former, membership } of planned) {
      if (!refused.has(head.uid) || membership === 'left') continue;
      if (former === undefined) this.#claims.forget(head.key);
      else this.#claims.note(head.key, former);
    }
    const hasUnknown = refused.size > 0 || planned.some(({ isUnknown }) => isUnknown);
    const keysOfUid = hasUnknown
      ? planGroup([...claims, ...(await this.#claimsOf(leaving, context))], maxRules ?? MAX_RULES).keysOf
      : ofStaying.keysOf;
    const placed = this.#claims.place(unitKey, new Set(keysOf(listeners)));
    const ofLeaving = leaving.flatMap(({ head }) => keysOfUid.get(head.uid) ?? []);
    const kept = new Set(
      claims.flatMap(({ ingress, former = [] }) => (refused.has(ingress.uid) ? keysOf(former) : [])),
    );
    const gone = [...placed.filter((key) => !kept.has(key)), ...ofLeaving];
    const onlyLeaving = hasUnknown ? [...new Set(gone)].toSorted() : undefined;
    const uploads = new Map(planned.flatMap(({ plan }) => [...plan.uploads]));
    const namespaces = new Map(
      planned.flatMap(({ head, plan }) => [...plan.uploads.keys()].map((hash) => [hash, head.namespace])),
    );
    const placedIds = new Set(namedIdsOf(listeners));
    const ensured = await certificates.ensure(unitKey, uploads, context, {
      namespaceOf: (hash) => namespaces.get(hash) ?? '',
      named: claims.map((claim) => namedIdsOf(claim.listeners).filter((id) => placedIds.has(id))),
    });
    const ruleListeners = placeCertificates(listeners, ensured.ids, ensured.refused);
    const noticesFor = ({ head, notices, claimed, plan: { uploads: its } }: PlannedMember): readonly Notice[] => [
      ...notices,
      ...(noticesOf.get(head.uid) ?? []),
      ...[...its.keys()].flatMap((hash) => ensured.noticeOf.get(hash) ?? []),
      ...noticesOfRefused(claimed, ensured.refused),
    ];
    const plan = withRetry({ ...planOf(planned, ruleListeners), notices: [] }, ensured);
    let hasOthers = true;
    const unit: OwnerUnit<IngressHead> = {
      ...{ key: unitKey, object: leader.object, head: leader.head, listenerName },
      addressesOf: planAddresses,
      addressKey: leader.head.key,
      report: (problems) => {
        for (const member of planned) reports.problems(member.head, [...noticesFor(member), ...problems]);
        for (const { head } of leaving) reports.problems(head, problems);
      },
      publish: async (object, addresses, problems, signal) => {
        await forEach(planned, async (member) => {
          const all = [...noticesFor(member), ...problems];
          const written = member === leader ? object : member.object;
          // Who wrote a mark of a group himself is none of it.
          const isServed = member.isUnknown || this.#claims.get(member.head.key) !== undefined;
          const isWritten = member.membership === 'serving' && isJoined(member.head) && isServed;
          if (isWritten) await status.publish(written, addresses, all, signal);
          else reports.problems(member.head, member.membership === 'left' ? [] : all);
        });
      },
      waits: (observed) => {
        hasOthers = hasOtherRules(observed, listenerName, ruleListeners, onlyLeaving);
      },
    };
    const desired = {
      ...{ source: { kind: 'existing' as const, loadBalancerId }, listenerName, listeners: [], ruleListeners },
      ...(maxRules === undefined ? {} : { maxRules }),
      ...(onlyLeaving === undefined ? {} : { onlyLeaving }),
      allowsAddressChange: false,
    };
    const result = await sync.apply(unit, { ...plan, desired }, context);
    return { kind: 'served', result, isFree: sync.isInOrder(unitKey) || !hasOthers };
  }

  /** What Ingresses that go ask for, or asked for last. */
  async #claimsOf(leaving: readonly Member[], context: CallContext): Promise<readonly RuleClaim[]> {
    const claims: RuleClaim[] = [];
    for (const { head, object } of leaving) {
      const { planner } = this.#parts;
      const { settings } = readAnnotations(head.annotations);
      const known = this.#claims.get(head.key) ?? (await planner.plan(object, head, settings, context)).listeners;
      claims.push(GroupClaims.leaving(head, known ?? []));
    }
    return claims;
  }

  /** Whether this process has begun with a unit just now: what its Ingresses depend on is being read. */
  #isNew(unitKey: string): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const sinceMs = this.#sinceMs.get(unitKey) ?? nowMs;
    this.#sinceMs.set(unitKey, sinceMs);
    return nowMs - sinceMs < STARTING_MS;
  }

  /** Notes that the API server refuses writes of an Ingress, or that another client writes it all the time. */
  #avoid({ uid }: IngressHead): void {
    this.#avoidedUntilMs.set(uid, this.#deps.clock.monotonicMs() + AVOIDED_MS);
  }

  #isAvoided({ uid }: IngressHead): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [one, untilMs] of this.#avoidedUntilMs) if (untilMs <= nowMs) this.#avoidedUntilMs.delete(one);
    return this.#avoidedUntilMs.has(uid);
  }

  /** Ends those of which nothing is on the load balancer any more, and those whose rules stay without them. */
  async #endSome(
    unitKey: string,
    { staying, leaving }: Members,
    { result, isFree }: Extract<Brought, { readonly kind: 'served' }>,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const left = staying.filter(({ membership }) => membership === 'left');
    const isAlone = left.length === staying.length;
    // Their rules are kept by another one of the group.
    for (const member of !isAlone || isFree ? left : []) {
      this.#claims.leave(unitKey, member.head);
      await this.#end(member, signal);
    }
    if (leaving.length === 0) return result;
    if (!isFree) return soonest(result, LEAVING_MS);
    await forEach(leaving, (member) => this.#end(member, signal));
    return result;
  }

  /** Ends a group, or what it was, of which no Ingress has rules that stay. */
  async #release(group: Group, { staying, leaving }: Members, context: CallContext): Promise<ReconcileResult> {
    const { certificates, gates, sync } = this.#parts;
    const { unitKey, listenerName } = group;
    const unserved = staying.filter(({ membership }) => membership !== 'left');
    // The record of a joined one names the load balancer.
    const first = leaving.find(({ head }) => isJoined(head)) ?? leaving[0];
    if (first !== undefined) {
      const released = await sync.release(
        { key: unitKey, ...first, listenerName },
        ({ annotations }) => readAnnotations(annotations).settings,
        context,
      );
      if (unserved.length > 0) gates.note(unitKey, 'refused');
      if (released.kind === 'again') return released;
      this.#forget(first.head.key);
      const others = leaving.filter((member) => member !== first);
      await forEach(others, (member) => this.#end(member, context.signal));
    }
    for (const member of staying) if (member.membership === 'left') await this.#end(member, context.signal);
    certificates.forget(unitKey);
    if (unserved.length > 0) {
      gates.note(unitKey, 'refused');
      return { kind: 'again', afterMs: RESYNC_MS };
    }
    this.#claims.forgetUnit(unitKey);
    this.#sinceMs.delete(unitKey);
    this.#reservations.forget(group.loadBalancerId);
    sync.forget(unitKey);
    return { kind: 'done' };
  }

  /** Ends an Ingress of which nothing is on the load balancer any more, or is to be changed. */
  async #end({ object, head }: Member, signal: AbortSignal): Promise<void> {
    const { objects, published } = this.#parts;
    await published.release(head.key, signal);
    const fresh = await objects.read(head, signal);
    if (fresh !== undefined) await objects.forget(fresh, signal);
    else await objects.forget(object, signal);
    this.#forget(head.key);
  }

  #forget(key: string): void {
    this.#claims.forget(key);
    this.#parts.planner.forget(key);
    this.#parts.sync.forgetOwner(key);
    this.#parts.reports.forget(key);
  }
}

/** Does the same for each, whichever fail. @throws the first error, when all were tried */
async function forEach<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const errors: unknown[] = [];
  for (const one of all) await work(one).catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}

function soonest(result: ReconcileResult, afterMs: number): ReconcileResult {
  return result.kind === 'again' ? { kind: 'again', afterMs: Math.min(result.afterMs, afterMs) } : result;
}
