import type { CallContext, CloudTask } from '../../../cloud/cloud.ts';
import { type CloudError, isCloudError } from '../../../cloud/cloud-error.ts';
import type { EipClaim } from '../../../crd/eip-claim.ts';
import { MAX_TEXT, messageText } from '../../../runtime/limit-text.ts';
import { failureOf, TASK_CODE } from '../../calls/note-refusal.ts';
import { MAX_DESCRIPTION_AGE_MS } from '../../calls/recent-changes.ts';
import { decideIntentResolution } from '../../decide/decide-intent-resolution.ts';
import type { IntentFailure } from '../../decide/decision.ts';
import { EipChanges } from './eip-changes.ts';
import { claimBreaker, EIP_QUOTA, type EipDeps } from './eip-deps.ts';
import { inPhase } from './eip-status.ts';
import type { EipIntent, EipNote, EipPhase, EipSnapshot, EipStatus } from './eip-view.ts';
import { concludeEip, evaluateEipOutcome, withoutIntent } from './evaluate-eip-outcome.ts';
import { observeEips } from './observe-eips.ts';
import { eipTaskOf, sendEipCall } from './send-eip-call.ts';

/** A claim with a recorded intent. */
type EipCase = { readonly key: string; readonly claim: EipClaim };

/**
 * Result of a call. `status`: to be written; undefined: nothing may be resolved yet. `afterMs`: the call is still in it, and is
 * checked again then; undefined: it is over, done or not.
 */
type RunOutcome = { readonly status?: EipStatus; readonly note?: EipNote; readonly afterMs?: number };

/** How long a call waits for its task before it is recorded as accepted. */
const SETTLE_MS = 30_000;
const POLL_MS = 1_000;
/** A description may be older than the finished task. */
const MAX_POLLS = 8;
const OPEN_MS = 5_000;
const UNCLEAR_MS = 2_000;
const FIRST_REFUSAL_MS = 5_000;
const FIRST_PERMANENT_MS = 60_000;

/** Sends the calls of claims and resolves their outcomes. It remembers when it first read an intent. */
export class EipRunner {
  readonly #deps: EipDeps;
  readonly #firstSeenMs = new Map<string, number>();
  readonly #changes: EipChanges;

  constructor(deps: EipDeps) {
    this.#deps = deps;
    this.#changes = new EipChanges(deps.clock);
  }

  /** Reports whether a description that began at `sinceMs` may be older than what the last calls of a claim did. */
  isOfBefore(key: string, status: EipStatus, snapshot: EipSnapshot, sinceMs: number): boolean {
    return this.#changes.isContradicted(key, status, snapshot, sinceMs);
  }

  /** Builds the context of calls for a claim. */
  contextOf(key: string, signal: AbortSignal): CallContext {
    const timeoutMs = this.#deps.leader.requestTimeoutSeconds * 1000;
    return { priority: 'pod', owner: `eip/${key}`, signal, timeoutMs };
  }

  /** Sends the call of a recorded intent. Rejects with the signal's reason only. */
  async send(one: EipCase, intent: EipIntent, signal: AbortSignal): Promise<RunOutcome> {
    const { breakers } = this.#deps;
    const sent: EipIntent = { ...intent, tries: (intent.tries ?? 0) + 1 };
    this.#note(sent);
    if (intent.action === 'AllocateAddresses') breakers.beginProbe(EIP_QUOTA, one.key);
    let task: CloudTask;
    try {
      task = await sendEipCall(this.#deps, sent, one.claim.spec ?? {}, this.contextOf(one.key, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      return await this.#failed(one, sent, error, signal);
    }
    if (intent.action === 'AllocateAddresses') breakers.reset(EIP_QUOTA);
    const [eipID] = 'eipIds' in task.goal ? task.goal.eipIds : [];
    const accepted: EipIntent = {
      ...sent,
      phase: 'Accepted',
      taskID: task.taskId,
      ...(eipID === undefined ? {} : { eipID }),
    };
    return await this.#follow(one, accepted, task, signal);
  }

  /** Resolves an intent that was recorded when the reconcile began. */
  async resolve(one: EipCase, intent: EipIntent, signal: AbortSignal): Promise<RunOutcome> {
    const { clock, leader } = this.#deps;
    const firstSeenMs = this.#note(intent);
    const { epoch: ownEpoch, term } = leader;
    const context = { ownEpoch, firstSeenMs, nowMs: clock.monotonicMs(), leaseMs: term.leaseMs };
    const resolution = decideIntentResolution(intent, context);
    if (resolution.kind === 'wait') return { afterMs: resolution.ms };
    const task = eipTaskOf(intent);
    if (task !== undefined) return await this.#follow(one, intent, task, signal);
    const evaluated = await this.#evaluate(one, intent, signal);
    if (evaluated === 'repeat') return await this.send(one, intent, signal);
    if (evaluated === 'undone') return this.#undone(one, intent);
    return evaluated === 'moving' ? this.#open(one, intent, OPEN_MS) : evaluated;
  }

  #note({ id }: EipIntent): number {
    const firstMs = this.#firstSeenMs.get(id) ?? this.#deps.clock.monotonicMs();
    if (this.#firstSeenMs.size > MAX_REMEMBERED) this.#firstSeenMs.clear();
    this.#firstSeenMs.set(id, firstMs);
    return firstMs;
  }

  /** Reports whether an EIP that was allocated may be missing in descriptions, which are older: another one is not asked for. */
  #mayAppear(intent: EipIntent): boolean {
    const sinceMs = this.#deps.clock.monotonicMs() - this.#note(intent);
    return intent.action === 'AllocateAddresses' && sinceMs <= 2 * MAX_DESCRIPTION_AGE_MS;
  }

  async #follow(one: EipCase, intent: EipIntent, task: CloudTask, signal: AbortSignal): Promise<RunOutcome> {
    const context = { ...this.contextOf(one.key, signal), timeoutMs: SETTLE_MS };
    let settled: Awaited<ReturnType<EipDeps['cloud']['tasks']['settle']>>;
    try {
      settled = await this.#deps.cloud.tasks.settle(task, context);
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      // Without the right to read tasks the outcome is resolved by describing.
      settled = { kind: error.retry === 'never' ? 'lost' : 'pending' };
    }
    if (settled.kind === 'pending') return this.#open(one, intent, OPEN_MS);
    const isDone = settled.kind === 'done';
    const concluded = isDone ? concludeEip(intent, one.claim.status ?? {}, this.#deps.clock.nowMs()) : undefined;
    if (concluded !== undefined) return this.#done(one, intent, concluded);
    for (let polls = 0; polls < MAX_POLLS; polls++) {
      const evaluated = await this.#evaluate(one, intent, signal, isDone);
      if (evaluated === 'undone' && (settled.kind === 'failed' || !(isDone || this.#mayAppear(intent)))) {
        const message = settled.kind === 'failed' ? settled.reason : 'the cloud knows no such task';
        return this.#refused(one, intent, { code: TASK_CODE.failed, message });
      }
      if (typeof evaluated !== 'string') return evaluated;
      await this.#deps.clock.sleep(POLL_MS, signal);
    }
    if (this.#mayAppear(intent)) return this.#open(one, intent, OPEN_MS);
    // The task is done, and its effect was reverted: the next decision starts with a description.
    return { status: withoutIntent(one.claim.status ?? {}, intent) };
  }

  async #evaluate(
    one: EipCase,
    intent: EipIntent,
    signal: AbortSignal,
    isKnownDone = false,
  ): Promise<RunOutcome | 'undone' | 'repeat' | 'moving'> {
    const { clock } = this.#deps;
    const beganMs = clock.monotonicMs();
    const status = one.claim.status ?? {};
    let snapshot: EipSnapshot;
    try {
      const eipIds = intent.eipID === undefined ? [] : [intent.eipID];
      snapshot = await observeEips(this.#deps, one.key, eipIds, this.contextOf(one.key, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      return 'moving';
    }
    const found = evaluateEipOutcome(intent, status, snapshot, clock.nowMs());
    if (found.kind !== 'done') return found.kind;
    if (!isKnownDone && this.#changes.mayBeOfBefore(one.key, intent, beganMs)) return 'moving';
    return this.#done(one, intent, found.status);
  }

  #done({ key, claim }: EipCase, intent: EipIntent, status: EipStatus): RunOutcome {
    this.#changes.note(key, intent, claim.status ?? {});
    this.#deps.breakers.reset(claimBreaker(key));
    if (intent.action === 'ReleaseAddresses') this.#deps.breakers.allowProbe(EIP_QUOTA);
    const note = doneNote(intent, status);
    return { status, ...(note === undefined ? {} : { note }) };
  }

  async #failed(one: EipCase, intent: EipIntent, error: CloudError, signal: AbortSignal): Promise<RunOutcome> {
    const { key } = one;
    const { breakers, ids } = this.#deps;
    if (intent.action === 'AllocateAddresses') breakers.endProbe(EIP_QUOTA, key);
    if (error.retry === 'resolve') {
      const lastError = { code: error.code, message: messageText(error.text, MAX_TEXT.statusMessage), at: ids.now() };
      const tries = intent.tries ?? 1;
      return this.#open(
        one,
        { ...intent, phase: 'Unclear', lastError },
        UNCLEAR_MS * Math.min(tries, MAX_BACKOFF_FACTOR),
      );
    }
    if (error.retry === 'quota' && error.scope === 'eips') breakers.trip(EIP_QUOTA, error.afterMs, error.message);
    // The EIP is in another state than the claim contains: resolve by its actual state.
    if (error.retry === 'busy' || error.retry === 'gone') {
      const evaluated = intent.action === 'AllocateAddresses' ? 'undone' : await this.#evaluate(one, intent, signal);
      if (typeof evaluated !== 'string') return evaluated;
      if (evaluated === 'moving') return this.#open(one, intent, OPEN_MS);
    }
    const firstMs = error.retry === 'never' ? FIRST_PERMANENT_MS : Math.max(error.afterMs, FIRST_REFUSAL_MS);
    return this.#refused(one, intent, failureOf(error), firstMs);
  }

  /** Ends a call that is neither in flight nor done. */
  #undone(one: EipCase, intent: EipIntent): RunOutcome {
    const lastError = intent.lastError;
    if (lastError === undefined) return { status: withoutIntent(one.claim.status ?? {}, intent) };
    return this.#refused(one, intent, lastError);
  }

  #refused(
    { key, claim }: EipCase,
    intent: EipIntent,
    { code, message: text, requestId }: IntentFailure,
    firstMs = FIRST_REFUSAL_MS,
  ): RunOutcome {
    const { breakers, clock } = this.#deps;
    const request = requestId === undefined ? '' : `, RequestId=${requestId}`;
    const refusal = REFUSAL_TEXTS[intent.action] ?? {
      prefix: intent.action,
      reason: 'FailedReleaseEIP' as const,
      phase: 'Pending' as const,
    };
    const message = `${refusal.prefix}: [TencentCloudSDKError] Code=${code}, Message=${text}${request}`;
    // For a quota the breaker that all claims share decides the time; each claim also waits on its own breaker.
    breakers.trip(claimBreaker(key), firstMs, message);
    const before = withoutIntent(claim.status ?? {}, intent);
    const phase = claim.status?.phase === 'Releasing' ? 'Releasing' : refusal.phase;
    const status = inPhase(before, phase, { reason: refusal.reason, message }, clock.nowMs());
    return { status, note: { type: 'Warning', reason: refusal.reason, message } };
  }

  #open({ claim }: EipCase, intent: EipIntent, afterMs: number): RunOutcome {
    const intents = (claim.status?.intents ?? []).map((one) => (one.id === intent.id ? intent : one));
    return { status: { ...claim.status, intents }, afterMs };
  }
}

type RefusalText = { readonly prefix: string; readonly reason: EipNote['reason']; readonly phase: EipPhase };

/** Error texts of the product, which people search for. */
const REFUSAL_TEXTS: Readonly<Partial<Record<EipIntent['action'], RefusalText>>> = {
  AllocateAddresses: {
    prefix: 'Failed to create eip: failed to allocate eip',
    reason: 'FailedAllocateEIP',
    phase: 'Pending',
  },
  AssociateAddress: {
    prefix: 'Failed to bind eip: failed to associate eip',
    reason: 'FailedAssociateEIP',
    phase: 'Binding',
  },
  DisassociateAddress: { prefix: 'Failed to unbind eip', reason: 'FailedReleaseEIP', phase: 'Binding' },
  ReleaseAddresses: { prefix: 'Failed to release eip', reason: 'FailedReleaseEIP', phase: 'Releasing' },
};

const MAX_REMEMBERED = 50_000;
const MAX_BACKOFF_FACTOR = 8;

function doneNote(intent: EipIntent, status: EipStatus): EipNote | undefined {
  if (intent.action !== 'AssociateAddress' || status.phase !== 'Bound') return undefined;
  const message = `EIP ${status.publicIP ?? ''} (${status.eipID ?? ''}) is bound to ${status.privateIP ?? ''}`;
  return { type: 'Normal', reason: 'EIPBound', message };
}
