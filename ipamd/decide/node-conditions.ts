import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { joinLimited, MAX_TEXT, messageText } from '../../runtime/limit-text.ts';
import type { Slots } from './count-slots.ts';
import type { Answer, Blocked, Ids } from './decision.ts';
import { blocksIn, type DecisionContext, slotsOf } from './decision-context.ts';
import { type EniKind, KINDS } from './eni-kinds.ts';
import { EXTENSION_ENIS, type NodeView } from './node-view.ts';
import { offersOf } from './offers.ts';
import { eniRequestsHere, enisOf } from './open-requests.ts';
import { isShared } from './with-enis.ts';

type Condition = NonNullable<NodeEniConfigStatus['conditions']>[number];
type NewCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/**
 * Returns the status with its conditions up to date: of each kind of ENI, of the input, and of refusals of the cloud. The same
 * object when they are unchanged. Takes the time.
 * @param wants The answers of each kind.
 * @param answers Those of all parts of the decision.
 */
export function withConditions(
  status: NodeEniConfigStatus,
  context: DecisionContext,
  wants: ReadonlyMap<EniKind, readonly Answer[]>,
  answers: readonly Answer[],
  ids: Ids,
): NodeEniConfigStatus {
  const { view } = context;
  let next = status;
  for (const [kind, ofKind] of wants) next = withReady(next, view, kind, slotsOf(context, kind), ofKind, ids);
  const ofPool = wants.get(KINDS.shared) ?? [];
  const refusal = blocksIn(answers).find((answer) => answer.reason === 'CloudRefused' && !ofPool.includes(answer));
  return withRefusal(withProblems(next, view, ids), refusal, (status.intents ?? []).length === 0, ids);
}

/**
 * Returns the status with the condition of a kind of ENI up to date; the same object when it is unchanged. A node that
 * serves no exclusive ENI, and never did, has no condition about them. Takes the time.
 */
function withReady(
  status: NodeEniConfigStatus,
  view: NodeView,
  kind: EniKind,
  slots: Slots,
  answers: readonly Answer[],
  ids: Ids,
): NodeEniConfigStatus {
  const type = kind.condition;
  const hasCondition = status.conditions?.some((condition) => condition.type === type) ?? false;
  const isServed =
    kind.isShared ||
    (kind.maxEnisOf(view) ?? 0) > 0 ||
    enisOf(kind, status).length > 0 ||
    eniRequestsHere(kind, view).length > 0;
  if (!hasCondition && !isServed) return status;
  const evaluated = evaluateReady(status, view, kind, slots, blocksIn(answers));
  return withCondition(status, whileRetried(status, view, { type, ...evaluated }), ids);
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

/** Evaluates whether what a node has of a kind meets the demand, and if not, why. */
function evaluateReady(
  status: NodeEniConfigStatus,
  view: NodeView,
  kind: EniKind,
  { have, want }: Slots,
  blocks: readonly (Blocked & Answer)[],
): Omit<NewCondition, 'type'> {
  if (view.leaving !== 'no') {
    const holders = kind.isShared ? findHolders(view, status) : undefined;
    const waits = holders === undefined ? '' : `; they wait for ${holders}`;
    return { status: 'False', reason: 'Draining', message: `all ENIs of this node are being released${waits}` };
  }
  const blocked = blocks.find(({ reason }) => reason !== 'CallUnderWay');
  if (blocked !== undefined) return { status: 'False', reason: blocked.reason, message: blocked.message };
  if (have < want || blocks.some(({ claim }) => claim !== undefined)) {
    return { status: 'False', reason: 'CallUnderWay', message: `more ${kind.noun} are being requested` };
  }
  return { status: 'True', reason: 'SupplyMet' };
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
function withRefusal(
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
function withProblems(status: NodeEniConfigStatus, { problems = [] }: NodeView, ids: Ids): NodeEniConfigStatus {
  const type = 'ConfigValid';
  const [first] = problems;
  if (first !== undefined) {
    const message = problems.map((problem) => problem.message).join('; ');
    return withCondition(status, { type, status: 'False', reason: first.reason, message }, ids);
  }
  const hasCondition = status.conditions?.some((condition) => condition.type === type) ?? false;
  return hasCondition ? withCondition(status, { type, status: 'True', reason: 'Valid' }, ids) : status;
}
