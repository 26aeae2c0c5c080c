import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Ids } from './decision.ts';
import type { NodeProblem, NodeView } from './node-view.ts';
import type { Hold } from './scene.ts';
import type { Supply } from './supply.ts';

type Condition = NonNullable<NodeEniConfigStatus['conditions']>[number];
type Wanted = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** Longest message that a condition takes. */
const LONGEST_MESSAGE = 2048;

/** Returns the status with its conditions as they are now; the same object when they stand already. Pure, takes the time. */
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

/** Returns the status with one condition set; the time moves only when the condition changes sides. Pure. */
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

/** Says whether the supply meets the demand, and if not, why. Pure. */
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
 * Returns the status with the condition of what the cloud refuses beside new addresses: security groups, what is given
 * back. It stays while a call is under way that may be refused again, and says afterwards that it is over. Pure.
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

/** The condition is there once something was wrong, and says afterwards that it is over. */
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
