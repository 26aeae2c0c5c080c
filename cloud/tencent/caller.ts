import type { Clock } from '../../runtime/clock.ts';
import { classifyError } from '../classify-error.ts';
import type { CallContext, CallPriority } from '../cloud.ts';
import { CloudError, DEADLINE_CODE, isCloudError } from '../cloud-error.ts';
import type { CallScheduler, CallVerdict } from '../pacing/call-scheduler.ts';
import type { KeyFailure } from './credentials/credential.ts';
import { decideRetry } from './decide-retry.ts';
import { type Action, type Product, productOf, type Requests, type TencentApi } from './requests.ts';
import { withTimeout } from './with-timeout.ts';

/** Returns a number in [0, 1); the source of jitter. */
export type Random = () => number;

/** Receives every attempt and every call, for metrics and logs. Rates are in `TencentCloud.pacing`. */
export type CallObserver = {
  /**
   * Called after each attempt that was sent: `attempt` counts from 1, `waitedMs` is the time in the queue before it,
   * `tookMs` the time of the request; `code` of its error, undefined when it succeeded.
   */
  onAttempt(attempt: {
    readonly action: Action;
    readonly attempt: number;
    readonly waitedMs: number;
    readonly tookMs: number;
    readonly code: string | undefined;
  }): void;
  /** Called when no source has a key to sign with, or STS gives none for it; `text` says which were asked, and what to do. */
  onKeyFailure?(kind: KeyFailure, text: string): void;
  /**
   * Called when a call has ended; `tookMs` includes its attempts and waits; `attempts` is 0 when it never left the
   * queue. `code` of the error that its caller gets, ABORTED when the caller gave up, undefined when it succeeded.
   */
  onCall?(call: {
    readonly product: Product;
    readonly action: Action;
    readonly priority: CallPriority;
    readonly attempts: number;
    readonly tookMs: number;
    readonly code: string | undefined;
  }): void;
};

/** Dependencies of calls. */
type CallerDeps = {
  readonly api: TencentApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: CallScheduler;
  readonly observer?: CallObserver;
};

/** Makes a call: paced, with a deadline, repeated when that is safe. */
export type Caller = <A extends Action>(action: A, request: Requests[A], context: CallContext) => Promise<unknown>;

/** Longest wait for one answer. Most answers take 0.2 s; an answer that takes this long was most likely lost. */
const ATTEMPT_TIMEOUT_MS = 10_000;

/**
 * Part of a call's time that a change keeps for its answer: it is not sent later. One that is sent at the end of its time
 * would be without an answer, and to find out what became of it takes descriptions, of the whole cluster where many
 * calls waited equally long.
 */
const ANSWER_PART = 1 / 4;

/** Time limit of a call with all its attempts, milliseconds, when the context has none. */
export const DEFAULT_TIMEOUT_MS = 60_000;

/** Creates the caller that all parts of the adapter share. */
export function createCaller(deps: CallerDeps): Caller {
  return async (action, request, context) => {
    const timeoutMs = context.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const startedMs = deps.clock.monotonicMs();
    const endMs = startedMs + timeoutMs;
    const answerMs = isRead(action) ? 0 : Math.min(ATTEMPT_TIMEOUT_MS, timeoutMs * ANSWER_PART);
    const sendByMs = endMs - answerMs;
    const progress: Progress = { lastError: undefined, ambiguousError: undefined, attempts: 0 };
    // The last error of the call is more informative than an expired deadline. Without one the call never left the
    // queue.
    const reason = (): Error =>
      progress.lastError === undefined ? deadlineError(action, timeoutMs) : finalError(progress.lastError, progress);
    let code: string | undefined;
    try {
      return await withTimeout(deps.clock, timeoutMs, context.signal, reason, (signal) =>
        callWithRetries(deps, action, request, { ...context, signal, endMs, sendByMs, expiryError: reason }, progress),
      );
    } catch (error) {
      code = isCloudError(error) ? error.code : 'ABORTED';
      throw error;
    } finally {
      const { attempts } = progress;
      const tookMs = deps.clock.monotonicMs() - startedMs;
      const { priority } = context;
      deps.observer?.onCall?.({ product: productOf(action), action, priority, attempts, tookMs, code });
    }
  };
}

/** The progress of a call; `ambiguousError`: the error of an attempt that may have had an effect. */
type Progress = { lastError: CloudError | undefined; ambiguousError: CloudError | undefined; attempts: number };

/**
 * The context of one call, its end, and the time until which it may wait to be sent. What was granted in that time is sent
 * before the end.
 */
type DeadlineContext = CallContext & {
  readonly endMs: number;
  readonly sendByMs: number;
  readonly expiryError: () => Error;
};

function isRead(action: Action): boolean {
  return action.startsWith('Describe');
}

/**
 * Selects the error of the whole call: when an earlier attempt may have had an effect, a later refusal does not
 * disprove it.
 */
function finalError(error: CloudError, { ambiguousError }: Progress): CloudError {
  return ambiguousError === undefined || error.retry === 'resolve' || error.retry === 'gone' ? error : ambiguousError;
}

async function callWithRetries<A extends Action>(
  deps: CallerDeps,
  action: A,
  request: Requests[A],
  context: DeadlineContext,
  progress: Progress,
): Promise<unknown> {
  const nature = { isRead: isRead(action), hasToken: hasToken(request) };
  let refusedKeys = 0;
  for (let attempt = 1; ; attempt++) {
    // A request in flight when time runs out may have had an effect: from here on the deadline means that.
    const markSent = (): void => {
      progress.lastError = timeoutError(action);
      progress.attempts = attempt;
    };
    try {
      return await attemptOnce(deps, action, request, context, attempt, markSent);
    } catch (error) {
      if (!isCloudError(error)) throw error;
      progress.lastError = error;
      if (error.retry === 'resolve' && !nature.isRead) progress.ambiguousError = error;
      if (error.retry === 'credentials') {
        refusedKeys += 1;
        deps.api.renewCredentials();
      }
      const waitMs = decideRetry(error, nature, error.retry === 'credentials' ? refusedKeys : attempt, deps.random());
      if (waitMs === undefined) throw finalError(error, progress);
      if (progress.ambiguousError !== undefined) context.onRepeat?.();
      await deps.clock.sleep(waitMs, context.signal);
    }
  }
}

async function attemptOnce<A extends Action>(
  deps: CallerDeps,
  action: A,
  request: Requests[A],
  context: DeadlineContext,
  attempt: number,
  onStart: () => void,
): Promise<unknown> {
  const { clock } = deps;
  const queuedMs = clock.monotonicMs();
  if (queuedMs >= context.sendByMs) throw context.expiryError();
  const ticket = { product: productOf(action), action, priority: context.priority, owner: context.owner };
  const send = async (): Promise<unknown> => {
    const startedMs = clock.monotonicMs();
    // In a process that was suspended, all timers fire at once when it continues. Another process may have taken over
    // meanwhile.
    if (startedMs >= context.endMs) throw context.expiryError();
    let code: string | undefined;
    onStart();
    try {
      return await withTimeout(
        clock,
        ATTEMPT_TIMEOUT_MS,
        context.signal,
        () => timeoutError(action),
        (signal) => deps.api.call(action, request, signal),
      );
    } catch (error) {
      code = isCloudError(error) ? error.code : 'ABORTED';
      throw error;
    } finally {
      const tookMs = clock.monotonicMs() - startedMs;
      deps.observer?.onAttempt({ action, attempt, waitedMs: startedMs - queuedMs, tookMs, code });
    }
  };
  const granted = Promise.withResolvers<void>();
  let sent: Promise<unknown> | undefined;
  await withTimeout(clock, context.sendByMs - queuedMs, context.signal, context.expiryError, (waiting) => {
    const start = (): Promise<unknown> => {
      // Granted in the moment in which it left the queue: its caller has the error that it is not sent.
      waiting.throwIfAborted();
      granted.resolve();
      return send();
    };
    sent = deps.scheduler.run(ticket, waiting, start, classifyForRate);
    return Promise.race([granted.promise, sent]);
  });
  return await sent;
}

function classifyForRate(error: unknown): CallVerdict {
  if (!isCloudError(error, 'throttled')) return { isThrottled: false, afterMs: 0 };
  return { isThrottled: true, isProductWide: error.isAccountWide, afterMs: error.afterMs };
}

function hasToken(request: object): boolean {
  return 'ClientToken' in request && typeof request.ClientToken === 'string' && request.ClientToken !== '';
}

function timeoutError(action: string): CloudError {
  return classifyError({ code: 'TIMEOUT', action, text: 'no answer in time' });
}

/** The error of a call whose time ran out before anything was changed: it was never sent, or it only reads. */
export function deadlineError(action: string, timeoutMs: number): CloudError {
  const text = `not sent or not answered within ${timeoutMs} ms; calls are rate limited, check the rates`;
  return new CloudError({ code: DEADLINE_CODE, action, text, retry: 'backoff', afterMs: 0 });
}
