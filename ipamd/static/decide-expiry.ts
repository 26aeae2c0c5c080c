import { CLAIM_EXPIRED_DURATION_ANNOTATION } from '../../crd/names.ts';
import type { ClaimView } from './claim-view.ts';
import { readDurationMs } from './find-rule.ts';

/** When a kept address expires. */
export type Expiry =
  | { readonly kind: 'never' }
  /** Expired when `atMs` of the wall clock has come. */
  | { readonly kind: 'at'; readonly atMs: number };

/**
 * Decides when the address of a claim without a Pod expires: by the annotation of its VpcIP, else as the claim says, else
 * as the flag does; counted from when its last Pod was gone. What cannot be read does not count. Pure.
 */
export function decideExpiry({
  claim,
  vips,
  defaultExpiredMs,
}: Pick<ClaimView, 'claim' | 'vips' | 'defaultExpiredMs'>): Expiry {
  const since = claim?.status?.retainedSince;
  if (claim === undefined || since === undefined) return { kind: 'never' };
  const texts = [
    ...vips.map(({ metadata }) => metadata.annotations?.[CLAIM_EXPIRED_DURATION_ANNOTATION]),
    claim.spec.claimExpiredDuration,
  ];
  const said = texts.map((text) => (text === undefined ? undefined : readDurationMs(text.trim())));
  const ms = said.find((one) => one !== undefined) ?? defaultExpiredMs;
  return ms === 0 ? { kind: 'never' } : { kind: 'at', atMs: Date.parse(since) + ms };
}
