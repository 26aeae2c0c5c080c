import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { DirectHold } from './decide-direct-growth.ts';
import type { Ids } from './decision.ts';
import { directEnisOf, directSupplyOf, wishesHere } from './direct-supply.ts';
import type { NodeProblem, NodeView } from './node-view.ts';
import type { Hold } from './scene.ts';
import type { Supply } from './supply.ts';

type Condition = NonNullable<NodeEniConfigStatus['conditions']>[number];
type Wanted = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** Longest message of a condition, characters. */
const LONGEST_MESSAGE = 2048;

/** Returns the status with its conditions up to date; the same object when they are unchanged. Takes the time. */
export function withReady(
  status: NodeEniConfigStatus,
  view: NodeView,
  supply: Supply,
  hold: Hold | undefined,
  ids: Ids,
): NodeEniConfigStatus {
  const ready = withCondition(status, judgeReady(view, supply, hold), ids);
  return withProblems(ready, view.problems ?? [], ids);
}

/** Returns the status with one condition set; the transition time changes only with the condition's status. */
export function withCondition(status: NodeEniConfigStatus, wanted: Wanted, ids: Ids): NodeEniConfigStatus {
  const conditions = status.conditions ?? [];
  const held = conditions.find((condition) => condition.type === wanted.type);
  const { message: fullMessage, ...head } = wanted;
  const message = fullMessage?.slice(0, LONGEST_MESSAGE);
  const isSame = held?.status === wanted.status && held.reason === wanted.reason && held.message === message;
  if (isSame) return status;
  const lastTransitionTime = held?.status === wanted.status ? held.lastTransitionTime : ids.now();
  const next: Condition = { ...head, ...(message === undefined ? {} : { message }), lastTransitionTime };
  return { ...status, conditions: [...conditions.filter((condition) => condition.type !== wanted.type), next] };
}

/** Evaluates whether the supply meets the demand, and if not, why. */
function judgeReady(view: NodeView, supply: Supply, hold: Hold | undefined): Wanted {
  const type = 'Ready';
  if (view.leaving !== 'no') {
    return { type, status: 'False', reason: 'Draining', message: 'everything of this node is given back' };
  }
  if (hold !== undefined && hold.reason !== 'CallUnderWay') {
    return { type, status: 'False', reason: hold.reason, message: hold.message };
  }
  if (supply.have < supply.want) {
    return { type, status: 'False', reason: 'CallUnderWay', message: 'more addresses are being asked for' };
  }
  return { type, status: 'True', reason: 'SupplyMet' };
}

/**
 * Returns the status with the condition about refusals of the cloud that do not concern new addresses: security groups,
 * removals. The condition stays while a call is in flight that may be refused again; afterwards it becomes True.
 */
export function withRefusal(
  status: NodeEniConfigStatus,
  refusal: Pick<Hold, 'reason' | 'message'> | undefined,
  isCalm: boolean,
  ids: Ids,
): NodeEniConfigStatus {
  const type = 'CloudAccepts';
  if (refusal !== undefined) {
    const { reason, message } = refusal;
    return withCondition(status, { type, status: 'False', reason, message }, ids);
  }
  const isHeld = status.conditions?.some((condition) => condition.type === type) ?? false;
  return isHeld && isCalm ? withCondition(status, { type, status: 'True', reason: 'Accepted' }, ids) : status;
}

/** Sets the condition about invalid input. It exists once something was wrong, and becomes True afterwards. */
function withProblems(status: NodeEniConfigStatus, problems: readonly NodeProblem[], ids: Ids): NodeEniConfigStatus {
  const type = 'ConfigValid';
  const [first] = problems;
  if (first !== undefined) {
    const message = problems.map((problem) => problem.message).join('; ');
    return withCondition(status, { type, status: 'False', reason: first.reason, message }, ids);
  }
  const isHeld = status.conditions?.some((condition) => condition.type === type) ?? false;
  return isHeld ? withCondition(status, { type, status: 'True', reason: 'Valid' }, ids) : status;
}

/** Type of the condition of a node's exclusive ENIs. */
const DIRECT_READY = 'DirectENIReady';

/**
 * Returns the status with the condition of its exclusive ENIs, with numbers. A node that serves none, and never did,
 * has no such condition. Returns the same object when the condition is unchanged. Takes the time.
 */
export function withDirectReady(
  status: NodeEniConfigStatus,
  view: NodeView,
  holds: readonly DirectHold[],
  ids: Ids,
): NodeEniConfigStatus {
  const isHeld = status.conditions?.some(({ type }) => type === DIRECT_READY) ?? false;
  const isServed = (view.maxDirectENI ?? 0) > 0 || directEnisOf(status).length > 0 || wishesHere(view).length > 0;
  if (!isHeld && !isServed) return status;
  const judged = judge(status, view, holds);
  return withCondition(status, { type: DIRECT_READY, ...judged }, ids);
}

function judge(status: NodeEniConfigStatus, view: NodeView, holds: readonly DirectHold[]) {
  if (view.leaving !== 'no') {
    return { status: 'False' as const, reason: 'Draining', message: 'everything of this node is given back' };
  }
  const hold = holds.find(({ reason }) => reason !== 'CallUnderWay');
  if (hold !== undefined) return { status: 'False' as const, reason: hold.reason, message: hold.message };
  const { have, want } = directSupplyOf(view, status);
  if (have < want || holds.length > 0) {
    return { status: 'False' as const, reason: 'CallUnderWay', message: 'more exclusive ENIs are being asked for' };
  }
  return { status: 'True' as const, reason: 'SupplyMet' };
}
