import type { CallContext } from '../../cloud/cloud.ts';
import type { DesiredRuleListener } from '../balancers/desired-rules.ts';
import { type Notice, remark } from '../balancers/notice.ts';
import type { OwnerAddresses } from '../balancers/owner-addresses.ts';
import type { OwnerObjects } from '../balancers/write-owner.ts';
import { isJoined, type Membership, wantsToLeave } from './decide-membership.ts';
import type { Member } from './find-members.ts';
import { type GroupClaims, retarget } from './group-claims.ts';
import type { IngressPlanner } from './ingress-planner.ts';
import type { IngressPlan } from './plan-ingress.ts';
import { readAnnotations } from './read-annotations.ts';
import { type IngressHead, readIngressHead } from './read-ingress.ts';

/** What an Ingress of a group is planned with. */
type MemberParts = {
  readonly published: Pick<OwnerAddresses, 'need'>;
  readonly planner: Pick<IngressPlanner, 'plan' | 'forget'>;
  readonly objects: Pick<OwnerObjects<IngressHead>, 'writeRecord'>;
  readonly claims: GroupClaims;
};

/** One whose rules are on the load balancer, with what it asks for. */
export type PlannedMember = Member & {
  readonly plan: IngressPlan;
  readonly notices: readonly Notice[];
  /** Its rules; undefined: they are not known. */
  readonly claimed: readonly DesiredRuleListener[] | undefined;
};

const NOTHING: IngressPlan = { uploads: new Map(), notices: [] };

/**
 * Plans one Ingress of a group, and writes that it is of the group before anything is made for it. One that cannot be read,
 * or has mode skip, keeps the rules that it asked for last.
 * @throws KubeError
 */
export async function planMember(
  { published, planner, objects, claims }: MemberParts,
  member: Member,
  loadBalancerId: string,
  context: CallContext,
): Promise<PlannedMember> {
  const { head, membership } = member;
  const { settings, notices: ofAnnotations, areTargetsKnown } = readAnnotations(head.annotations);
  if (settings.directAccess !== undefined) published.need();
  const isKnown = isJoined(head) && head.hasFinalizer;
  const last = claims.get(head.key);
  if (settings.mode === 'skip' && (last !== undefined || membership !== 'left')) {
    planner.forget(head.key);
    // One that was never served has no rules that could stay.
    const claimed = last === undefined ? (isKnown ? undefined : []) : retarget(last, []);
    return { ...member, plan: NOTHING, notices: [...member.ofClass, ...ofAnnotations], claimed };
  }
  const plan = await planner.plan(member.object, head, settings, context);
  if (membership === 'left') {
    // What it asked for last is not known, as after a restart: it is taken for what it asks for now.
    const claimed = retarget(plan.listeners ?? [], []);
    if (plan.listeners !== undefined) claims.note(head.key, claimed);
    return { ...member, plan: isStarting(plan) ? plan : NOTHING, notices: [], claimed };
  }
  const isReadable = plan.desired !== undefined && !ofAnnotations.some(({ blocks }) => blocks);
  if (isReadable && plan.listeners !== undefined) claims.note(head.key, plan.listeners);
  const now = areTargetsKnown ? (plan.listeners ?? []) : [];
  const kept = last === undefined ? (isKnown ? undefined : []) : retarget(last, now);
  const joins = isReadable && membership === 'serving' && !isKnown;
  const record = { serial: 1, loadBalancerId, grouped: true };
  const object = joins ? await objects.writeRecord(member.object, record, context.signal) : member.object;
  const notices = [
    ...member.ofClass,
    ...ofAnnotations,
    ...plan.notices,
    ...refuseLeaving(head, membership, loadBalancerId),
  ];
  const claimed = isReadable ? plan.listeners : kept;
  return { ...member, object, head: readIngressHead(object), plan, notices, claimed };
}

/** Tells whether what an Ingress depends on is being read. */
export function isStarting({ listeners, notices, afterMs }: IngressPlan): boolean {
  return listeners === undefined && afterMs !== undefined && !notices.some(({ blocks }) => blocks);
}

function refuseLeaving(head: IngressHead, membership: Membership, loadBalancerId: string): readonly Notice[] {
  if (membership !== 'serving' || !isJoined(head) || !wantsToLeave(head)) return [];
  const message = `the annotations kubernetes.io/ingress.existLbId and ingress.cloud.tencent.com/enable-group ask for another load balancer than ${loadBalancerId}, and so for another address; the Ingress stays in its group. Write the annotation tke.cloud.tencent.com/allow-address-change: "true", or restore the former values`;
  return [remark('ImmutableChangeRefused', message)];
}
