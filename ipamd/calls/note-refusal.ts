import { classifyError } from '../../cloud/classify-error.ts';
import type { CallPriority } from '../../cloud/cloud.ts';
import { type CloudError, isCloudError, type Retry } from '../../cloud/cloud-error.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Intent, IntentFailure, IntentOutcome } from '../decide/decision.ts';
import { MOVING_CODE, NOT_MOVED_CODE } from '../decide/evaluate-intent.ts';
import { callKeysOf, DESCRIBE_CALL, exhaustedKey, keyMadePossibleBy, keysFreedBy, nodeKey } from './call-keys.ts';
import type { NodeDeps } from './node-deps.ts';

/** A recorded intent, and the object that records it. */
export type IntentCase = {
  readonly node: string;
  readonly uid: string;
  readonly intent: Intent;
  readonly status: NodeEniConfigStatus;
  readonly priority: CallPriority;
  /** The node that an address is moved from, for a call that was decided a moment ago. */
  readonly sourceNode?: string;
};

/** ipamd's own codes for tasks that did not reach their goal. */
export const TASK_CODE = { failed: 'TASK_FAILED', lost: 'TASK_LOST' } as const;

/** Code of a move that was not sent: the other node had not released the address, or uses it again. */
export const NOT_RELEASED_CODE = 'NOT_LET_GO';

/** Code of a call that its task should have finished, while the description does not show it. */
export const UNCONFIRMED_CODE = 'DESCRIBED_OTHERWISE';

const FIRST_REFUSAL_MS = 2_000;
const FIRST_PERMANENT_MS = 30_000;
/** A subnet in which a creation failed is blocked for longer than the call, so that another one is tried first. */
const OTHER_SUBNET_MS = 10_000;

/** Returns the outcome of a call that a quota stopped, and opens the breaker of the exhausted quota. */
export function refuseExhausted(deps: NodeDeps, one: IntentCase, error: CloudError): IntentOutcome {
  const { node, intent, status } = one;
  const key = exhaustedKey(callKeysOf(node, intent, status), error);
  const failure = failureOf(error);
  endProbes(deps, one);
  reportToClaim(deps, one, failure);
  deps.breakers.trip(key, error.afterMs, `${failure.code}: ${failure.message}`, failure.requestId);
  if (key.startsWith('subnet/')) deps.facts.subnetFull(key.slice('subnet/'.length));
  // The object shows free capacity: it may lack some addresses of the ENI.
  if (key.startsWith('eni-ips/'))
    deps.memory.requestDescribe(node, 'the cloud reports an ENI full that should have free addresses');
  // So it may lack ENIs of the instance.
  if (key.startsWith('instance-enis/'))
    deps.memory.requestDescribe(node, 'the cloud reports an instance full that should have places for ENIs');
  return { kind: 'refused', error: failure };
}

/**
 * Returns the outcome of a call that waited for the rate until its time was over. The cloud refused nothing, so that
 * nothing is blocked: the same call is decided again, in the write that ends this one.
 */
export function keepUnsent(deps: NodeDeps, one: IntentCase, failure: IntentFailure): IntentOutcome {
  endProbes(deps, one);
  return { kind: 'refused', error: failure };
}

/**
 * Reports whether nothing of the call is in flight after this error: what is not described as done has not happened then.
 */
export function isRefusal(intent: Intent, { code }: { readonly code: string }): boolean {
  if (code === TASK_CODE.failed || code === TASK_CODE.lost) return true;
  const refusals: readonly Retry[] = ['never', 'gone', 'busy', 'backoff', 'throttled', 'credentials', 'quota'];
  return !OWN_CODES.includes(code) && refusals.includes(classifyError({ code, action: intent.action, text: '' }).retry);
}

/** ipamd's own codes that do not tell whether the call happened. */
const OWN_CODES: readonly string[] = [UNCONFIRMED_CODE, MOVING_CODE, NOT_MOVED_CODE, NOT_RELEASED_CODE, 'INTERNAL'];

/** Returns the outcome of a refused call, and blocks the call for this node for a while. */
export function refuse(
  deps: NodeDeps,
  one: IntentCase,
  { code, message, requestId }: IntentFailure,
  pauseMs = pauseAfter(code, one.intent),
): IntentOutcome {
  const { node, intent, status } = one;
  const { own } = callKeysOf(node, intent, status);
  endProbes(deps, one);
  reportToClaim(deps, one, { code, message });
  const [call, ...more] = own;
  const text = `${code}: ${message}`;
  deps.breakers.trip(call, pauseMs, text, requestId);
  for (const key of more) deps.breakers.trip(key, Math.max(pauseMs, OTHER_SUBNET_MS), text, requestId);
  return { kind: 'refused', error: { code, message, ...(requestId === undefined ? {} : { requestId }) } };
}

/**
 * Codes that are not reported to the claim: the call was lost or came too late, the cloud did not refuse it. It is
 * tried again.
 */
const UNREPORTED: readonly string[] = [NOT_MOVED_CODE, NOT_RELEASED_CODE, UNCONFIRMED_CODE, TASK_CODE.lost];

function reportToClaim(
  { claimRefused }: NodeDeps,
  { node, intent }: IntentCase,
  { code, message }: IntentFailure,
): void {
  const { claim, action, ips = [] } = intent;
  if (claim !== undefined && !UNREPORTED.includes(code)) claimRefused?.(claim, { node, action, ips, code, message });
}

/** How long a refused call is blocked at first, milliseconds. */
export function pauseOf({ retry, afterMs }: CloudError): number {
  return retry === 'never' ? FIRST_PERMANENT_MS : Math.max(afterMs, FIRST_REFUSAL_MS);
}

function pauseAfter(code: string, { action }: Intent): number {
  const isOurs = code === TASK_CODE.failed || UNREPORTED.includes(code);
  return isOurs ? FIRST_REFUSAL_MS : pauseOf(classifyError({ code, action, text: '' }));
}

/** Converts a refusal to plain data. */
export function failureOf({ code, text, requestId }: CloudError): IntentFailure {
  return { code, message: text, ...(requestId === undefined ? {} : { requestId }) };
}

/** Runs a description, and notes whether the cloud forbids it: that blocks nothing, but is reported. */
export async function trackDescribe<T>(deps: NodeDeps, node: string, describe: () => Promise<T>): Promise<T> {
  const key = nodeKey(node, DESCRIBE_CALL);
  try {
    const described = await describe();
    deps.breakers.reset(key);
    return described;
  } catch (error) {
    if (isCloudError(error, 'never', 'credentials'))
      deps.breakers.trip(key, FIRST_PERMANENT_MS, `${error.code}: ${error.text}`, error.requestId);
    throw error;
  }
}

/** Closes the breakers of the quotas that a call uses: the cloud accepted it. */
export function noteAccepted(deps: NodeDeps, { node, intent, status }: IntentCase): void {
  for (const key of callKeysOf(node, intent, status).shared.values()) deps.breakers.reset(key);
}

/**
 * Closes the own breakers of a call that reached its goal, because only then its task did not fail, and that of a call
 * that it made possible. Eases those of the quotas that it freed.
 */
export function noteDone(deps: NodeDeps, { node, intent, status }: IntentCase): void {
  for (const key of callKeysOf(node, intent, status).own) deps.breakers.reset(key);
  const possible = keyMadePossibleBy(node, intent);
  if (possible !== undefined) deps.breakers.reset(possible);
  for (const key of keysFreedBy(intent, status)) deps.breakers.allowProbe(key);
}

/** Ends the probes of a call that brought no result, so that others may try. */
export function endProbes(deps: NodeDeps, { node, intent, status }: IntentCase): void {
  const { own, shared } = callKeysOf(node, intent, status);
  for (const key of [...own, ...shared.values()]) deps.breakers.endProbe(key, node);
}
