import type { Clock } from '../../runtime/clock.ts';
import { classifyError } from '../classify-error.ts';
import type { CallContext, CallPriority } from '../cloud.ts';
import { CloudError, isCloudError } from '../cloud-error.ts';
import type { CallScheduler, CallVerdict } from '../pacing/call-scheduler.ts';
import { decideRetry } from './decide-retry.ts';
import { type Action, type Product, productOf, type Requests, type TencentApi } from './requests.ts';
import { withTimeout } from './with-timeout.ts';

/** A number in [0, 1); how jitter comes in. */
export type Random = () => number;

/** Hears of every attempt and every call; how metrics and logs come in. Rates are in `TencentCloud.pacing`. */
export type CallObserver = {
  /**
   * After each attempt that was sent: `attempt` counts from 1, `waitedMs` in line before it, `tookMs` under way; `code`
   * of its error, undefined when it went well.
   */
  onAttempt(attempt: {
    readonly action: Action;
    readonly attempt: number;
    readonly waitedMs: number;
    readonly tookMs: number;
    readonly code: string | undefined;
  }): void;
  /**
   * When a call is over, its attempts and waits included; `attempts` is 0 when it never had its turn. `code` of the
   * error that its caller gets, ABORTED when the caller left, undefined when it went well.
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

/** What calls are made with. */
export type CallerDeps = {
  readonly api: TencentApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: CallScheduler;
  readonly observer?: CallObserver;
};

/** Makes a call: paced, with a deadline, repeated where that is safe. */
export type Caller = <A extends Action>(action: A, request: Requests[A], context: CallContext) => Promise<unknown>;

/** Longest wait for one answer. Most answers take 0.2 s; what takes this long has most likely been lost. */
const ATTEMPT_TIMEOUT_MS = 10_000;

/** Most milliseconds for a call with all its attempts when the context does not say. */
export const DEFAULT_TIMEOUT_MS = 60_000;

/** Makes the caller that every part of the adapter shares. */
export function createCaller(deps: CallerDeps): Caller {
  return async (action, request, context) => {
    const timeoutMs = context.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const startedMs = deps.clock.monotonicMs();
    const endMs = startedMs + timeoutMs;
    const progress: Progress = { last: undefined, unsure: undefined, attempts: 0 };
    // The call's own last error says more than that time ran out; without one it never left the line.
    const reason = (): Error =>
      progress.last === undefined ? deadlineError(action, timeoutMs) : verdictOf(progress.last, progress);
    let code: string | undefined;
    try {
      return await withTimeout(deps.clock, timeoutMs, context.signal, reason, (signal) =>
        repeat(deps, action, request, { ...context, signal, endMs, late: reason }, progress),
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

/** What a call has come to so far; `unsure`: an attempt of it may have done what was asked. */
type Progress = { last: CloudError | undefined; unsure: CloudError | undefined; attempts: number };

/** The context of one call, and the moment after which nothing of it may be sent. */
type CallOf = CallContext & { readonly endMs: number; readonly late: () => Error };

/** What a refusal means for the whole call: one that may have happened before has not been refused by it. */
function verdictOf(error: CloudError, { unsure }: Progress): CloudError {
  return unsure === undefined || error.retry === 'resolve' || error.retry === 'gone' ? error : unsure;
}

async function repeat<A extends Action>(
  deps: CallerDeps,
  action: A,
  request: Requests[A],
  context: CallOf,
  progress: Progress,
): Promise<unknown> {
  const nature = { isRead: action.startsWith('Describe'), hasToken: hasToken(request) };
  let refusedKeys = 0;
  for (let attempt = 1; ; attempt++) {
    // What is under way when time runs out may have happened: from here on that is what the deadline means.
    const underWay = (): void => {
      progress.last = timeoutError(action);
      progress.attempts = attempt;
    };
    try {
      return await once(deps, action, request, context, attempt, underWay);
    } catch (error) {
      if (!isCloudError(error)) throw error;
      progress.last = error;
      if (error.retry === 'resolve' && !nature.isRead) progress.unsure = error;
      if (error.retry === 'credentials') {
        refusedKeys += 1;
        deps.api.renewCredentials();
      }
      const waitMs = decideRetry(error, nature, error.retry === 'credentials' ? refusedKeys : attempt, deps.random());
      if (waitMs === undefined) throw verdictOf(error, progress);
      await deps.clock.sleep(waitMs, context.signal);
    }
  }
}

async function once<A extends Action>(
  deps: CallerDeps,
  action: A,
  request: Requests[A],
  context: CallOf,
  attempt: number,
  onStart: () => void,
): Promise<unknown> {
  const { clock } = deps;
  const queuedMs = clock.monotonicMs();
  const ticket = { product: productOf(action), action, priority: context.priority, owner: context.owner };
  return await deps.scheduler.run(
    ticket,
    context.signal,
    async () => {
      const startedMs = clock.monotonicMs();
      // A process that stood still wakes with all its timers due: others may have taken the matter over since.
      if (startedMs >= context.endMs) throw context.late();
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
    },
    judgeRate,
  );
}

function judgeRate(error: unknown): CallVerdict {
  if (!isCloudError(error, 'throttled')) return { isThrottled: false, afterMs: 0 };
  return { isThrottled: true, isProductWide: error.isAccountWide, afterMs: error.afterMs };
}

function hasToken(request: object): boolean {
  return 'ClientToken' in request && typeof request.ClientToken === 'string' && request.ClientToken !== '';
}

function timeoutError(action: string): CloudError {
  return classifyError({ code: 'TIMEOUT', action, text: 'no answer in time' });
}

/** The error of who waited in vain: nothing was asked of the cloud, or it was only read. */
export function deadlineError(action: string, timeoutMs: number): CloudError {
  const text = `no turn or no answer within ${timeoutMs} ms; calls are paced, look at the rates`;
  return new CloudError({ code: 'DEADLINE', action, text, retry: 'backoff', afterMs: 0 });
}
