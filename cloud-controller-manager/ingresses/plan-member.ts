import type { CallContext } from '../../cloud/cloud.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { DesiredRuleListener } from '../balancers/desired-rules.ts';
import { type Notice, remark } from '../balancers/notice.ts';
import type { OwnerAddresses } from '../balancers/owner-addresses.ts';
import { readOwnerMark } from '../balancers/owner-mark.ts';
import type { StatusPublisher } from '../balancers/publish-status.ts';
import type { OwnerObjects } from '../balancers/write-owner.ts';
import { isJoined, type Membership, wantsToLeave } from './decide-membership.ts';
import type { Member } from './find-members.ts';
import { type GroupClaims, retarget } from './group-claims.ts';
import type { IngressPlanner } from './ingress-planner.ts';
import { noticeOfUnknown } from './plan-group.ts';
import type { IngressPlan } from './plan-ingress.ts';
import { readAnnotations } from './read-annotations.ts';
import { type IngressHead, readIngressHead } from './read-ingress.ts';

/** What an Ingress of a group is planned with. */
type MemberParts = {
  readonly published: Pick<OwnerAddresses, 'need'>;
  readonly planner: Pick<IngressPlanner, 'plan' | 'forget'>;
  readonly objects: Pick<OwnerObjects<IngressHead>, 'writeMark'>;
  readonly status: Pick<StatusPublisher<IngressHead>, 'isAllowed'>;
  readonly claims: GroupClaims;
  /** Why the load balancer may not be used for a namespace. */
  readonly refuse: (namespace: string) => Notice | undefined;
};

/** One whose rules are on the load balancer, with what it asks for. */
export type PlannedMember = Member & {
  readonly plan: IngressPlan;
  readonly notices: readonly Notice[];
  /** Its rules. */
  readonly claimed: readonly DesiredRuleListener[];
  /** Its rules before, where they are known: what it keeps where `claimed` are too many. */
  readonly former?: readonly DesiredRuleListener[];
  /** Whether it may have other rules, of a former process: `claimed` is what it asks for now, and nothing is made of that. */
  readonly isUnknown: boolean;
};

const NOTHING: IngressPlan = { uploads: new Map(), notices: [] };
/** The API server refused a write of one Ingress, or it has changed. */
const RETRY_MS = 5_000;

/**
 * Plans one Ingress of a group, and writes that it is of the group before anything is made for it. One that cannot be read,
 * or has mode skip, keeps the rules that it asked for last. What the API server refuses of it concerns no other one.
 */
export async function planMember(
  parts: MemberParts,
  member: Member,
  loadBalancerId: string,
  context: CallContext,
): Promise<PlannedMember> {
  try {
    return await plan(parts, member, loadBalancerId, context);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!isKubeError(error)) throw error;
    const last = parts.claims.get(member.head.key);
    const message = `${error.message}; its rules stay as they are, and it is tried again`;
    const isShort = error.code === 'CONFLICT' || error.code === 'NOT_FOUND';
    const notices = isShort ? [] : [remark('SyncLoadBalancerFailed', message)];
    const isUnknown = last === undefined && (await isProven(parts, member.head, context.signal));
    const claimed = retarget(last ?? [], []);
    return { ...member, plan: { ...NOTHING, afterMs: RETRY_MS }, notices, claimed, isUnknown };
  }
}

/**
 * Reports whether rules may have been made for an Ingress by a former process. Its mark says so, which people may write;
 * its status does too, which they may not. Where this program may not write it, the mark has to do.
 */
async function isProven({ status }: MemberParts, head: IngressHead, signal: AbortSignal): Promise<boolean> {
  if (!isJoined(head) || !head.hasFinalizer) return false;
  return head.addresses.length > 0 || !(await status.isAllowed(signal));
}

/** @throws KubeError */
async function plan(
  parts: MemberParts,
  member: Member,
  loadBalancerId: string,
  context: CallContext,
): Promise<PlannedMember> {
  const { published, planner, objects, claims, refuse } = parts;
  const { head, membership } = member;
  const { settings, notices: read, areTargetsKnown } = readAnnotations(head.annotations);
  const refusal = refuse(head.namespace);
  const ofAnnotations = refusal === undefined ? read : [...read, refusal];
  if (settings.directAccess !== undefined) published.need();
  const last = claims.get(head.key);
  const isUnknown = last === undefined && (await isProven(parts, head, context.signal));
  const unknown = isUnknown ? [noticeOfUnknown(loadBalancerId)] : [];
  if (settings.mode === 'skip' && (last !== undefined || membership !== 'left')) {
    // What it asked for last is not known, as after a restart: others do not get what it asks for now.
    const now = isUnknown ? ((await planner.plan(member.object, head, settings, context)).listeners ?? []) : [];
    planner.forget(head.key);
    const notices = [...member.ofClass, ...ofAnnotations, ...unknown];
    return { ...member, plan: NOTHING, notices, claimed: retarget(last ?? now, []), isUnknown };
  }
  const planned = await planner.plan(member.object, head, settings, context);
  if (membership === 'left') {
    // What it asked for last is not known, as after a restart: it is taken for what it asks for now.
    const claimed = retarget(planned.listeners ?? [], []);
    if (planned.listeners !== undefined) claims.note(head.key, claimed);
    return { ...member, plan: isStarting(planned) ? planned : NOTHING, notices: [], claimed, isUnknown: false };
  }
  const isReadable = planned.desired !== undefined && !ofAnnotations.some(({ blocks }) => blocks);
  const hasMark = isJoined(head) && head.hasFinalizer && readOwnerMark(head).uid !== undefined;
  const joins = isReadable && membership === 'serving' && !hasMark;
  const mark = { serial: 1, loadBalancerId, grouped: true };
  const object = joins ? await objects.writeMark(member.object, mark, context.signal) : member.object;
  if (isReadable && planned.listeners !== undefined) claims.note(head.key, planned.listeners);
  const now = areTargetsKnown ? (planned.listeners ?? []) : [];
  const notices = [
    ...member.ofClass,
    ...ofAnnotations,
    ...planned.notices,
    ...refuseLeaving(head, membership, loadBalancerId),
    ...(isReadable || isStarting(planned) ? [] : unknown),
  ];
  const former = last === undefined ? {} : { former: last };
  const common = { ...member, object, head: readIngressHead(object), plan: planned, notices, ...former };
  if (isReadable) return { ...common, claimed: planned.listeners ?? [], isUnknown: false };
  const kept = isUnknown ? now : last === undefined ? [] : retarget(last, now);
  return { ...common, claimed: kept, isUnknown };
}

/** Reports whether what an Ingress depends on is being read. */
export function isStarting({ listeners, notices, afterMs }: IngressPlan): boolean {
  return listeners === undefined && afterMs !== undefined && !notices.some(({ blocks }) => blocks);
}

function refuseLeaving(head: IngressHead, membership: Membership, loadBalancerId: string): readonly Notice[] {
  if (membership !== 'serving' || !isJoined(head) || !wantsToLeave(head)) return [];
  const message = `the annotations kubernetes.io/ingress.existLbId and ingress.cloud.tencent.com/enable-group ask for another load balancer than ${loadBalancerId}, and so for another address; the Ingress stays in its group. Write the annotation tke.cloud.tencent.com/allow-address-change: "true", or restore the former values`;
  return [remark('ImmutableChangeRefused', message)];
}
