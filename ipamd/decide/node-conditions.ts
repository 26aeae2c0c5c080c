import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { joinLimited, MAX_TEXT, messageText } from '../../runtime/limit-text.ts';
import type { AddressCounts } from './address-counts.ts';
import type { ExclusiveBlocked } from './decide-exclusive-growth.ts';
import type { Blocked, Ids } from './decision.ts';
import { countExclusiveEnis, eniRequestsHere, exclusiveEnisOf } from './exclusive-eni-counts.ts';
import { EXTENSION_ENIS, type NodeProblem, type NodeView } from './node-view.ts';
import { offersOf } from './offers.ts';
import { isShared } from './with-enis.ts';

type Condition = NonNullable<NodeEniConfigStatus['conditions']>[number];
type NewCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** Returns the status with its conditions up to date; the same object when they are unchanged. Takes the time. */
export function withReady(
  status: NodeEniConfigStatus,
  view: NodeView,
  supply: AddressCounts,
  blocked: Blocked | undefined,
  ids: Ids,
): NodeEniConfigStatus {
  const ready = withCondition(status, whileRetried(status, view, evaluateReady(status, view, supply, blocked)), ids);
  return withProblems(ready, view.problems ?? [], ids);
}

/** Returns the status with one condition set; the transition time changes only with the condition's status. */
export function withCondition(status: NodeEniConfigStatus, desired: NewCondition, ids: Ids): NodeEniConfigStatus {
  const conditions = status.conditions ?? [];
  const existing = conditions.find((condition) => condition.type === desired.type);
  const { message: fullMessage, ...head } = desired;
  const message = fullMessage === undefined ? undefined : messageText(fullMessage, MAX_TEXT.condition);
  const isSame =
    existing?.status === desired.status && existing.reason === desired.reason && existing.message === message;
  if (isSame) return status;
  const lastTransitionTime = existing?.status === desired.status ? existing.lastTransitionTime : ids.now();
  const next: Condition = { ...head, ...(message === undefined ? {} : { message }), lastTransitionTime };
  return { ...status, conditions: [...conditions.filter((condition) => condition.type !== desired.type), next] };
}

/** Keys of calls that the cloud refused, by the reason that they lead to. */
const REFUSED_KEYS: Readonly<Record<string, RegExp>> = {
  ENILimit: /^vpc-enis$/,
  InstanceENILimit: new RegExp(`^(instance-enis|${EXTENSION_ENIS})$`),
  SubnetExhausted: /^subnet\//,
  CloudRefused: /^(subnet\/|call\/(CreateNetworkInterface|AttachNetworkInterface|AssignPrivateIpAddresses))/,
};

/**
 * Returns the condition to report: while a refused call is tried again the refusal stays the reason, or it would come
 * and go with each try.
 */
function whileRetried({ conditions = [] }: NodeEniConfigStatus, view: NodeView, evaluated: NewCondition): NewCondition {
  const existing = conditions.find(({ type }) => type === evaluated.type);
  if (evaluated.reason !== 'CallUnderWay' || existing?.status !== 'False') return evaluated;
  const keys = REFUSED_KEYS[existing.reason];
  const isRetried = keys !== undefined && [...(view.refusedLast ?? [])].some((key) => keys.test(key));
  return isRetried ? existing : evaluated;
}

/** Evaluates whether the supply meets the demand, and if not, why. */
function evaluateReady(
  status: NodeEniConfigStatus,
  view: NodeView,
  supply: AddressCounts,
  blocked: Blocked | undefined,
): NewCondition {
  const type = 'Ready';
  if (view.leaving !== 'no') {
    const holders = findHolders(view, status);
    const waits = holders === undefined ? '' : `; they wait for ${holders}`;
    return { type, status: 'False', reason: 'Draining', message: `all ENIs of this node are being released${waits}` };
  }
  if (blocked !== undefined && blocked.reason !== 'CallUnderWay') {
    return { type, status: 'False', reason: blocked.reason, message: blocked.message };
  }
  if (supply.have < supply.want) {
    return { type, status: 'False', reason: 'CallUnderWay', message: 'more addresses are being requested' };
  }
  return { type, status: 'True', reason: 'SupplyMet' };
}

/**
 * Returns for people what the ENIs of a node that is drained wait for: live Pods, or the agent, which has not offered
 * what is free. Undefined when they wait for neither.
 */
function findHolders(view: NodeView, status: NodeEniConfigStatus): string | undefined {
  if (view.leaving !== 'drain') return undefined;
  const offers = offersOf({ ...view, status });
  const waiting = (status.eniInfos ?? []).filter((eni) => eni.state !== 'Detaching' && !offers.isVacant(eni));
  const ips = waiting.flatMap(podIpsOf);
  const pods = ips.flatMap((ip) => {
    const pod = view.podNames?.get(ip);
    return pod === undefined ? [] : [`${pod} (${ip})`];
  });
  if (pods.length > 0) return `Pods that use their addresses: ${joinLimited(pods.sort())}`;
  if (waiting.length === 0) return undefined;
  return `the agent of the node to offer ${joinLimited(waiting.map(({ eniID }) => eniID))}: without it nothing says that their addresses are free`;
}

function podIpsOf(eni: NodeEniInfo): readonly string[] {
  if (!isShared(eni)) return eni.primaryIP === undefined ? [] : [eni.primaryIP];
  return (eni.addresses ?? []).map(({ ip }) => ip);
}

/**
 * Returns the status with the condition about refusals of the cloud that do not concern new addresses: security groups,
 * removals. The condition stays while a call is in flight that may be refused again; afterwards it becomes True.
 */
export function withRefusal(
  status: NodeEniConfigStatus,
  refusal: Pick<Blocked, 'reason' | 'message'> | undefined,
  isIdle: boolean,
  ids: Ids,
): NodeEniConfigStatus {
  const type = 'CloudAccepts';
  if (refusal !== undefined) {
    const { reason, message } = refusal;
    return withCondition(status, { type, status: 'False', reason, message }, ids);
  }
  const hasCondition = status.conditions?.some((condition) => condition.type === type) ?? false;
  return hasCondition && isIdle ? withCondition(status, { type, status: 'True', reason: 'Accepted' }, ids) : status;
}

/** Sets the condition about invalid input. It exists once something was wrong, and becomes True afterwards. */
function withProblems(status: NodeEniConfigStatus, problems: readonly NodeProblem[], ids: Ids): NodeEniConfigStatus {
  const type = 'ConfigValid';
  const [first] = problems;
  if (first !== undefined) {
    const message = problems.map((problem) => problem.message).join('; ');
    return withCondition(status, { type, status: 'False', reason: first.reason, message }, ids);
  }
  const hasCondition = status.conditions?.some((condition) => condition.type === type) ?? false;
  return hasCondition ? withCondition(status, { type, status: 'True', reason: 'Valid' }, ids) : status;
}

/** Type of the condition of a node's exclusive ENIs. */
const DIRECT_READY = 'DirectENIReady';

/**
 * Returns the status with the condition of its exclusive ENIs, with numbers. A node that serves none, and never did,
 * has no such condition. Returns the same object when the condition is unchanged. Takes the time.
 */
export function withExclusiveReady(
  status: NodeEniConfigStatus,
  view: NodeView,
  blockers: readonly ExclusiveBlocked[],
  ids: Ids,
): NodeEniConfigStatus {
  const hasCondition = status.conditions?.some(({ type }) => type === DIRECT_READY) ?? false;
  const servesExclusiveEnis =
    (view.maxDirectENI ?? 0) > 0 || exclusiveEnisOf(status).length > 0 || eniRequestsHere(view).length > 0;
  if (!hasCondition && !servesExclusiveEnis) return status;
  const evaluated = evaluateExclusiveReady(status, view, blockers);
  return withCondition(status, whileRetried(status, view, { type: DIRECT_READY, ...evaluated }), ids);
}

function evaluateExclusiveReady(status: NodeEniConfigStatus, view: NodeView, blockers: readonly ExclusiveBlocked[]) {
  if (view.leaving !== 'no') {
    return { status: 'False' as const, reason: 'Draining', message: 'all ENIs of this node are being released' };
  }
  const blocked = blockers.find(({ reason }) => reason !== 'CallUnderWay');
  if (blocked !== undefined) return { status: 'False' as const, reason: blocked.reason, message: blocked.message };
  const { have, want } = countExclusiveEnis(view, status);
  if (have < want || blockers.length > 0) {
    return { status: 'False' as const, reason: 'CallUnderWay', message: 'more exclusive ENIs are being requested' };
  }
  return { status: 'True' as const, reason: 'SupplyMet' };
}
