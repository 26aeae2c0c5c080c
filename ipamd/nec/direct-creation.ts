import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf, claimMarkOf } from './claim-marks.ts';
import type { Intent } from './decision.ts';

/** Tag of ENIs that are handed to one Pod: tells them from shared ones when nothing but the cloud knows of them. */
export const MODE_TAG = { name: 'tke-eni-mode', direct: 'direct-eni' } as const;

/** Tells whether an intent makes an exclusive ENI. Pure. */
export function isDirectCreation({ action, tags }: Intent): boolean {
  return action === 'CreateNetworkInterface' && tags?.[MODE_TAG.name] === MODE_TAG.direct;
}

/** The fields of an entry whose ENI an intent makes: its mode, and whom it is for. Empty for a shared one. Pure. */
export function directFieldsOf(intent: Intent): Pick<NodeEniInfo, 'mode' | 'claim'> {
  if (!isDirectCreation(intent)) return {};
  return { mode: 'direct-eni', ...(intent.claim === undefined ? {} : { claim: claimMarkOf(intent.claim) }) };
}

/** Writes whom an ENI is kept for as the key of its claim; undefined for one of the pool. Pure. */
export function eniClaimOf({ claim }: Pick<NodeEniInfo, 'claim'>): string | undefined {
  return claim === undefined ? undefined : claimKeyOf(claim);
}
