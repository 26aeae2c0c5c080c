import { systemClock } from '../../../runtime/clock.ts';
import { ApiError } from '../api-error.ts';
import type { FaultAction } from '../faults.ts';
import { answerError, type Exchange } from './exchange.ts';

/** Does what the faults say before a request has its effect. Resolves to false when the request ends here. */
export async function sufferBefore(actions: readonly FaultAction[], { request, response }: Exchange): Promise<boolean> {
  for (const action of actions) {
    if (action.kind === 'delay') await systemClock.sleep(action.ms);
    if (action.kind === 'hang') return false;
    if (action.kind === 'drop-before') {
      request.socket.destroy();
      return false;
    }
    if (action.kind === 'status') {
      const { code, reason = REASONS[code] ?? 'InternalError', retryAfterSeconds } = action;
      const details = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
      answerError(response, new ApiError(code, reason, `fault: ${reason}`, details));
      return false;
    }
  }
  return true;
}

const REASONS: Readonly<Record<number, string>> = {
  409: 'Conflict',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};
