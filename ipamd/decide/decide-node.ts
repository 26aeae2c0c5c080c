import { INTENTS } from '../../crd/intent.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { decideClaims, decideOthersCalls } from './decide-claims.ts';
import { decideExclusiveGrowth, planExclusiveGrowth } from './decide-exclusive-growth.ts';
import { decideExclusiveMarks, desiredGroupsOf } from './decide-exclusive-marks.ts';
import { decideExclusiveRelease } from './decide-exclusive-release.ts';
import { decideGrowth } from './decide-growth.ts';
import { decideRelease } from './decide-release.ts';
import { decideDraining, decideRemoval } from './decide-removal.ts';
import type { Begin, Blocked, Decision, Ids, Leader } from './decision.ts';
import {
  beginCall,
  buildDecisionContext,
  CALL_IN_FLIGHT,
  checkBreakers,
  type DecisionContext,
  type Step,
} from './decision-context.ts';
import { withExclusiveReady, withReady, withRefusal } from './node-conditions.ts';
import type { NodeView } from './node-view.ts';
import { isSameData } from './same-data.ts';
import { withClaims } from './with-claims.ts';

/**
 * Decides the next step of one node. The same view and ids give the same decision.
 * More addresses come before fewer, because Pods wait for them. A call for one ENI never waits for a call of another
 * ENI, except creations, attachments and detachments: an instance accepts one of these at a time.
 */
export function decideNode(view: NodeView, leader: Leader, ids: Ids): Decision {
  const { spec, status, leaving } = view;
  const observedEpoch = spec.observedSupplyEpoch ?? 0;
  if (observedEpoch > (status.supplyEpoch ?? 0)) {
    return {
      kind: 'describe',
      why: `the agent has observed supply epoch ${observedEpoch}, the object has ${status.supplyEpoch ?? 0}`,
    };
  }
  const intents = status.intents ?? [];
  if (leaving !== 'no' && (status.eniInfos ?? []).length === 0 && intents.length === 0) return { kind: 'released' };
  const marked = withClaims(view, decideExclusiveMarks(view, decideDraining(view, withInstance(view))));
  const context = buildDecisionContext(view, marked, leader, ids);
  const growth = decideGrowth(context);
  const growthBlocked = growth?.kind === 'blocked' ? growth : undefined;
  const { step, blockers } = selectStep(growth, context);
  const exclusive = planExclusiveGrowth(context);
  const refusal = blockers.find((blocked) => blocked !== growthBlocked && blocked.reason === 'CloudRefused');
  if (step !== undefined && intents.length < INTENTS.maxItems) {
    const shared = withReady(step.status, view, context.supply, growthBlocked, ids);
    const started = withExclusiveReady(shared, view, exclusive.blockers, ids);
    return { ...step, status: withRefusal(started, refusal, false, ids) };
  }
  const ready = withExclusiveReady(
    withReady(marked, view, context.supply, growthBlocked, ids),
    view,
    exclusive.blockers,
    ids,
  );
  const next = withRefusal(ready, refusal, intents.length === 0, ids);
  if (!isSameData(next, status)) return { kind: 'write', status: next };
  return selectBlocked(blockers, intents.length > 0) ?? { kind: 'idle' };
}

function selectStep(
  growth: Step,
  context: DecisionContext,
): { readonly step?: Begin; readonly blockers: readonly Blocked[] } {
  const blockers: Blocked[] = [];
  const deciders = [
    claimStep,
    () => growth,
    decideExclusiveGrowth,
    decideRemoval,
    decideExclusiveRelease,
    decideRelease,
    decideSecurityGroups,
    decideOthersCalls,
  ];
  for (const decide of deciders) {
    const step = decide(context);
    if (step?.kind === 'begin') return { step, blockers };
    if (step !== undefined) blockers.push(step);
  }
  return { blockers };
}

function claimStep(context: DecisionContext): Step {
  return decideClaims(context).step;
}

/**
 * Decides which ENI gets other security groups; content and order count. An undefined list leaves the groups unchanged,
 * an empty list removes them. A pool ENI gets the node's groups, a static one those of its Pod. Takes ids.
 */
function decideSecurityGroups(context: DecisionContext): Step {
  const { view, busy } = context;
  const due = (context.status.eniInfos ?? []).flatMap((eni) => {
    const wanted = eni.state === 'Attached' && !busy.has(eni.eniID) ? desiredGroupsOf(view, eni) : undefined;
    return wanted === undefined || isSameData(eni.securityGroups, wanted) ? [] : [{ eniID: eni.eniID, wanted }];
  });
  const [next] = due.filter(({ eniID }) => !view.blocked.has(`call/ModifyNetworkInterfaceAttribute/${eniID}`));
  if (next !== undefined) {
    const { eniID, wanted } = next;
    return beginCall(context, 'ModifyNetworkInterfaceAttribute', { eniID, securityGroups: wanted });
  }
  if (view.securityGroups === undefined && due.length === 0) return undefined;
  const keys = [...view.blocked].filter((key) => key.startsWith('call/ModifyNetworkInterfaceAttribute/'));
  return checkBreakers(context, keys, 'CloudRefused', 'cannot change the security groups of an ENI');
}

/** Reasons that are reported on claims, not on the node. */
const OF_CLAIMS: ReadonlySet<Blocked['reason']> = new Set(['ClaimWaits', 'NodeFull']);

/** Returns the first block, which has the most important reason, with the shortest time to the next check. */
function selectBlocked(blockers: readonly Blocked[], hasIntents: boolean): Blocked | undefined {
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
