import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Ids, Intent, IntentOutcome } from './decision.ts';

/** Returns the status with what came of an intent's call, and the intent gone or marked. Pure. */
export function finishIntent(
  _status: NodeEniConfigStatus,
  _intent: Intent,
  _outcome: IntentOutcome,
  _ids: Ids,
): NodeEniConfigStatus {
  throw new Error('not built yet');
}
