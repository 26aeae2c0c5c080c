import { CLAIM_EXPIRED_DURATION_ANNOTATION } from '../../crd/names.ts';
import type { ClaimView } from './claim-view.ts';
import { readDurationMs } from './read-claim-pod.ts';

/** When a static address expires. */
type Expiry =
  | { readonly kind: 'never' }
  /** Expires in `leftMs` milliseconds; expired at 0 and below. */
  | { readonly kind: 'in'; readonly leftMs: number };

/**
 * Decides when the address of a claim without a Pod expires: by the annotation of its VpcIP, else by the claim, else by
 * the flag; counted from the end of its last Pod. Unreadable values are ignored.
 */
export function decideExpiry({
  claim,
  vips,
  retainedForMs,
  defaultExpiredMs,
}: Pick<ClaimView, 'claim' | 'vips' | 'retainedForMs' | 'defaultExpiredMs'>): Expiry {
  if (claim?.status?.retainedSince === undefined) return { kind: 'never' };
  const texts = [
    ...vips.map(({ metadata }) => metadata.annotations?.[CLAIM_EXPIRED_DURATION_ANNOTATION]),
    claim.spec.claimExpiredDuration,
  ];
  const durations = texts.map((text) => (text === undefined ? undefined : readDurationMs(text.trim())));
  const ms = durations.find((one) => one !== undefined) ?? defaultExpiredMs;
  return ms === 0 ? { kind: 'never' } : { kind: 'in', leftMs: ms - retainedForMs };
}
