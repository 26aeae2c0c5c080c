import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { CloudSight, Intent, IntentOutcome } from './decision.ts';

/** Judges from a description what became of a call whose answer we do not have. Pure. */
export function judgeIntent(
  _intent: Intent,
  _sight: CloudSight,
  _status: NodeEniConfigStatus,
): IntentOutcome | 'repeat' {
  throw new Error('not built yet');
}
