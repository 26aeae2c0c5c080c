import { INTENTS } from '../../crd/intent.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { beginCall } from './begin-call.ts';
import { decideDraining } from './decide-draining.ts';
import { decideExclusiveMarks } from './decide-exclusive-marks.ts';
import type { Answer, Blocked, Decision, Ids, Leader } from './decision.ts';
import { blocksIn, buildDecisionContext, CALL_IN_FLIGHT, planInTurn } from './decision-context.ts';
import { type EniKind, KINDS } from './eni-kinds.ts';
import { withConditions } from './node-conditions.ts';
import type { NodeView } from './node-view.ts';
import { planClaims, planOthersCalls } from './plan-claims.ts';
import { planGroups } from './plan-groups.ts';
import { planReturns } from './plan-returns.ts';
import { claimWaitsOf, planWants } from './plan-wants.ts';
import { isSameData } from './same-data.ts';
import { withClaims } from './with-claims.ts';

/**
 * Decides the next step of one node: how it gets and gives back addresses and ENIs. The same view and ids give the same decision.
 *
 * ```
 * 1  an object that is older than what the agent has seen: describe the cloud, rebuild the status
 * 2  a node that leaves and has nothing left: the object may go
 * 3  mark what drains, and whose each address and ENI is                decide-draining, decide-exclusive-marks, with-claims
 * 4  count of each kind of ENI: have, coming, demand, limit             eni-kinds, count-slots
 * 5  more: claims, then each kind; groups, attach, assign, create       plan-claims, plan-wants
 * 6  less: ENIs that drain or are not needed, then offered addresses    plan-returns
 * 7  security groups that differ                                        plan-groups
 * 8  the first call of 5 to 7 goes on record in one write with all of that; then the node is decided again
 * 9  no call: what each want waits for becomes a condition, the state of a claim, and the time of the next look
 * ```
 * More comes before less, because Pods wait for it. A call for one ENI never waits for a call of another ENI, except
 * creations, attachments and detachments: an instance accepts one of these at a time.
 */
export function decideNode(
  view: NodeView,
  leader: Leader,
  ids: Ids,
  kinds: readonly EniKind[] = Object.values(KINDS),
): Decision {
  const { spec, status, leaving } = view;
  const { intents = [], eniInfos = [], supplyEpoch = 0 } = status;
  if ((spec.observedSupplyEpoch ?? 0) > supplyEpoch) {
    const why = `the agent has observed supply epoch ${spec.observedSupplyEpoch}, the object has ${supplyEpoch}`;
    return { kind: 'describe', why };
  }
  if (leaving !== 'no' && eniInfos.length === 0 && intents.length === 0) return { kind: 'released', waits: new Map() };
  const context = buildDecisionContext(view, withMarks(view), kinds);
  const claims = planClaims(context);
  const wants = new Map(kinds.map((kind) => [kind, planWants(context, kind)]));
  const answers = planInTurn([
    () => claims,
    ...[...wants.values()].map((ofKind) => () => ofKind),
    () => planReturns(context, kinds),
    () => planGroups(context),
    () => planOthersCalls(context),
  ]);
  const call = answers.find((answer) => answer.kind === 'call');
  if (call !== undefined && intents.length < INTENTS.maxItems) {
    const begun = beginCall(call, context.status, view, leader, ids);
    return { ...begun, status: withConditions(begun.status, context, wants, answers, ids) };
  }
  const next = withConditions(context.status, context, wants, answers, ids);
  if (!isSameData(next, status)) return { kind: 'write', status: next };
  const waits = claimWaitsOf(view, [...claims, ...[...wants.values()].flat()]);
  return { ...(selectBlocked(answers, intents.length > 0) ?? { kind: 'idle' }), waits };
}

/** Sets what is decided without a call: what drains, and which ENI and address belongs to which claim and Pod. */
function withMarks(view: NodeView): NodeEniConfigStatus {
  return withClaims(view, decideExclusiveMarks(view, decideDraining(view, withInstance(view))));
}

/** Reasons that are reported on claims, not on the node. */
const OF_CLAIMS: ReadonlySet<Blocked['reason']> = new Set(['ClaimWaits', 'NodeFull']);

/** Returns the first block, which has the most important reason, with the shortest time to the next check. */
function selectBlocked(answers: readonly Answer[], hasIntents: boolean): Blocked | undefined {
  const blockers = blocksIn(answers);
  const isOfNode = ({ reason }: Blocked) => !OF_CLAIMS.has(reason) && reason !== 'CallUnderWay';
  const first = blockers.find(isOfNode) ?? blockers[0];
  if (first === undefined) return hasIntents ? CALL_IN_FLIGHT : undefined;
  return { ...first, afterMs: Math.min(...blockers.map((blocked) => blocked.afterMs)) };
}

/** Writes the instance into the status, for people and for the calls of a later leader. */
function withInstance({ status, instance }: NodeView): NodeEniConfigStatus {
  if (instance === undefined) return status;
  const { instanceId: instanceID, instanceType, zone, vpcId: vpcID } = instance;
  const next = { ...status, instanceID, instanceType, zone, vpcID };
  return isSameData(next, status) ? status : next;
}
