import { isExclusiveCreation } from '../../crd/eni-places.ts';
import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf, claimMarkOf } from './claim-marks.ts';
import type { Intent } from './decision.ts';

/** Returns mode and claim mark for the entry of an ENI that an intent creates. Empty for a shared ENI. */
export function exclusiveFieldsOf(intent: Intent): Pick<NodeEniInfo, 'mode' | 'claim'> {
  if (!isExclusiveCreation(intent)) return {};
  return { mode: 'direct-eni', ...(intent.claim === undefined ? {} : { claim: claimMarkOf(intent.claim) }) };
}

/** Returns the key of an ENI's claim; undefined for a pool ENI. */
export function eniClaimOf({ claim }: Pick<NodeEniInfo, 'claim'>): string | undefined {
  return claim === undefined ? undefined : claimKeyOf(claim);
}
