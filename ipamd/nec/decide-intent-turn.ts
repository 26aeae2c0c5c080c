import { MUTATIONS } from '../../crd/intent.ts';
import type { Intent } from './decision.ts';

/** Whether an intent on record may be resolved now. */
export type IntentTurn = { readonly kind: 'wait'; readonly ms: number } | { readonly kind: 'resolve' };

/** When and by whom an intent is looked at. */
export type TurnContext = {
  readonly ownEpoch: number;
  /** When this leader first saw it on record; for its own intents, when it made the call. Monotonic milliseconds. */
  readonly firstSeenMs: number;
  readonly nowMs: number;
  readonly leaseMs: number;
};

/** Errors that leave the request under way somewhere. */
const MAY_STILL_ARRIVE: readonly string[] = ['TIMEOUT', 'NETWORK'];

/**
 * Decides when an intent whose call this process does not wait for may be resolved. Pure.
 * One with a task was answered: at once. An inherited one waits lease and request timeout: until then its sender may
 * live and its request arrive. An own one waits only where a request that arrives late would do harm, that is without a
 * ClientToken, and might arrive at all.
 */
export function decideIntentTurn(intent: Intent, { ownEpoch, firstSeenMs, nowMs, leaseMs }: TurnContext): IntentTurn {
  if (intent.phase === 'Accepted' && intent.taskID !== undefined) return { kind: 'resolve' };
  const isOwn = intent.leaderEpoch === ownEpoch;
  if (isOwn && !isHarmfulLate(intent)) return { kind: 'resolve' };
  const waitMs = (isOwn ? 0 : leaseMs) + intent.requestTimeoutSeconds * 1000;
  const leftMs = firstSeenMs + waitMs - nowMs;
  return leftMs > 0 ? { kind: 'wait', ms: leftMs } : { kind: 'resolve' };
}

/** An ENI's id is never used again, so that a deletion that arrives late finds nothing. */
function isHarmfulLate(intent: Intent): boolean {
  if (MUTATIONS[intent.action].takesClientToken || intent.action === 'DeleteNetworkInterface') return false;
  return intent.phase === 'Unclear' && MAY_STILL_ARRIVE.includes(intent.lastError?.code ?? 'TIMEOUT');
}
