import { classifyError } from '../../cloud/classify-error.ts';
import type { CallPriority } from '../../cloud/cloud.ts';
import { type CloudError, isCloudError, type Retry } from '../../cloud/cloud-error.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Intent, IntentFailure, IntentOutcome } from '../nec/decision.ts';
import { MOVING_CODE, NOT_MOVED_CODE } from '../nec/judge-intent.ts';
import { callKeysOf, DESCRIBE_CALL, exhaustedKey, keysFreedBy, ownKey } from './call-keys.ts';
import type { NodeDeps } from './node-deps.ts';

/** An intent on record, and the object that it is on record in. */
export type IntentCase = {
  readonly node: string;
  readonly uid: string;
  readonly intent: Intent;
  readonly status: NodeEniConfigStatus;
  readonly priority: CallPriority;
  /** The node that an address is moved from, for a call that was decided on a moment ago. */
  readonly sourceNode?: string;
};

/** Codes of ours for tasks that did not reach their goal. */
export const TASK_CODE = { failed: 'TASK_FAILED', lost: 'TASK_LOST' } as const;

/** The code of a move that was not asked for: the other node had not let go of the address, or has it in use again. */
export const NOT_LET_GO_CODE = 'NOT_LET_GO';

/** The code of what should be done by its task and was not seen done. */
export const UNSEEN_CODE = 'DESCRIBED_OTHERWISE';

const FIRST_REFUSAL_MS = 2_000;
const FIRST_NEVER_MS = 30_000;
/** A subnet that a creation failed in is left alone for longer than the call, so that another is tried first. */
const OTHER_SUBNET_MS = 10_000;

/** Makes the outcome of a call that a quota stopped, and opens the breaker of what is exhausted. */
export function exhausted(deps: NodeDeps, one: IntentCase, error: CloudError): IntentOutcome {
  const { node, intent, status } = one;
  const key = exhaustedKey(callKeysOf(node, intent, status), error);
  const failure = failureOf(error);
  endProbes(deps, one);
  tellClaim(deps, one, failure);
  deps.breakers.trip(key, error.afterMs, `${failure.code}: ${failure.message}`);
  if (key.startsWith('subnet/')) deps.facts.subnetFull(key.slice('subnet/'.length));
  // The object believes that there is room: it may not know all that is on the ENI.
  if (key.startsWith('eni-ips/')) deps.memory.askDescribe(node, 'the cloud finds an ENI full that should have room');
  return { kind: 'refused', error: failure };
}

/** Tells whether nothing of the call is under way after this error: what is not seen done has not happened then. Pure. */
export function isRefusal(intent: Intent, { code }: { readonly code: string }): boolean {
  if (code === TASK_CODE.failed || code === TASK_CODE.lost) return true;
  const refusals: readonly Retry[] = ['never', 'gone', 'busy', 'backoff', 'throttled', 'credentials', 'quota'];
  return !OWN_CODES.includes(code) && refusals.includes(classifyError({ code, action: intent.action, text: '' }).retry);
}

/** Codes of ours that say nothing about whether it happened. */
const OWN_CODES: readonly string[] = [UNSEEN_CODE, MOVING_CODE, NOT_MOVED_CODE, NOT_LET_GO_CODE, 'INTERNAL'];

/** Makes the outcome of a call that the cloud refused, and lets this node leave it alone for a while. */
export function refuse(
  deps: NodeDeps,
  one: IntentCase,
  { code, message, requestId }: IntentFailure,
  pauseMs = pauseAfter(code, one.intent),
): IntentOutcome {
  const { node, intent, status } = one;
  const { own } = callKeysOf(node, intent, status);
  endProbes(deps, one);
  tellClaim(deps, one, { code, message });
  const [call, ...more] = own;
  deps.breakers.trip(call, pauseMs, `${code}: ${message}`);
  for (const key of more) deps.breakers.trip(key, Math.max(pauseMs, OTHER_SUBNET_MS), `${code}: ${message}`);
  return { kind: 'refused', error: { code, message, ...(requestId === undefined ? {} : { requestId }) } };
}

/** A kept address whose call was lost, or came too late, was not refused by the cloud: it is tried again. */
const UNTOLD: readonly string[] = [NOT_MOVED_CODE, NOT_LET_GO_CODE, TASK_CODE.lost];

function tellClaim({ claimRefused }: NodeDeps, { node, intent }: IntentCase, { code, message }: IntentFailure): void {
  const { claim, action, ips = [] } = intent;
  if (claim !== undefined && !UNTOLD.includes(code)) claimRefused?.(claim, { node, action, ips, code, message });
}

/** How long a refused call is left alone at first, milliseconds. */
export function pauseOf({ retry, afterMs }: CloudError): number {
  return retry === 'never' ? FIRST_NEVER_MS : Math.max(afterMs, FIRST_REFUSAL_MS);
}

function pauseAfter(code: string, { action }: Intent): number {
  const isOurs = code === TASK_CODE.failed || UNTOLD.includes(code);
  return isOurs ? FIRST_REFUSAL_MS : pauseOf(classifyError({ code, action, text: '' }));
}

/** What a refusal says, in plain data. */
export function failureOf({ code, text, requestId }: CloudError): IntentFailure {
  return { code, message: text, ...(requestId === undefined ? {} : { requestId }) };
}

/** Runs a description, and notes whether the cloud forbids it: nothing is stopped by that, but it is told. */
export async function notingDescribe<T>(deps: NodeDeps, node: string, describe: () => Promise<T>): Promise<T> {
  const key = ownKey(node, DESCRIBE_CALL);
  try {
    const seen = await describe();
    deps.breakers.reset(key);
    return seen;
  } catch (error) {
    if (isCloudError(error, 'never', 'credentials'))
      deps.breakers.trip(key, FIRST_NEVER_MS, `${error.code}: ${error.text}`);
    throw error;
  }
}

/** Shuts the breakers of what a call needed: the cloud took it. */
export function noteAccepted(deps: NodeDeps, { node, intent, status }: IntentCase): void {
  for (const key of callKeysOf(node, intent, status).shared.values()) deps.breakers.reset(key);
}

/** Shuts the breakers of a call that reached its goal, for only then do its tasks not fail, and eases what it made room in. */
export function noteDone(deps: NodeDeps, { node, intent, status }: IntentCase): void {
  for (const key of callKeysOf(node, intent, status).own) deps.breakers.reset(key);
  for (const key of keysFreedBy(intent, status)) deps.breakers.ease(key);
}

/** Lets others try what this call did not find out about. */
export function endProbes(deps: NodeDeps, { node, intent, status }: IntentCase): void {
  const { own, shared } = callKeysOf(node, intent, status);
  for (const key of [...own, ...shared.values()]) deps.breakers.endProbe(key, node);
}
