import { CLAIM_EXPIRED_DURATION_ANNOTATION } from '../../../crd/names.ts';
import { readClaimExpiry } from '../../../crd/pod-network-request.ts';
import type { VpcIp } from '../../../crd/vpc-ip.ts';
import { Faults, renderFault } from '../../../runtime/decode.ts';
import type { ClaimNotice } from './claim-decision.ts';
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

/** Reports the annotations of VpcIPs that are no retention time and are ignored. */
export function findExpiryFaults(vips: readonly VpcIp[]): readonly ClaimNotice[] {
  const name = CLAIM_EXPIRED_DURATION_ANNOTATION;
  return vips.flatMap(({ metadata }): readonly ClaimNotice[] => {
    const text = metadata.annotations?.[name];
    const faults = new Faults();
    if (text !== undefined) readClaimExpiry(text.trim(), `metadata.annotations.${name}`, faults);
    const vip = { name: metadata.name, ...(metadata.uid === undefined ? {} : { uid: metadata.uid }) };
    return faults.list.map((fault) => ({
      reason: 'AnnotationInvalid',
      message: `${renderFault(fault)}; it is ignored`,
      vip,
    }));
  });
}
