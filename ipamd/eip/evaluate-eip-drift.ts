import type { Eip } from '../../cloud/cloud.ts';
import { EIP_TAG } from '../../crd/cloud-tags.ts';
import type { EipClaimEntry } from './eip-claim-cache.ts';
import { claimTag } from './eip-identity.ts';
import { RELEASING_STATES, TRANSITIONAL_STATES } from './eip-view.ts';

/** Returns the claims whose EIP differs from their status. */
export function findDifferingClaims(
  claims: readonly EipClaimEntry[],
  eips: ReadonlyMap<string, Eip>,
): readonly string[] {
  return claims.filter((entry) => differs(entry, eips)).map(({ key }) => key);
}

/**
 * Returns what tells whether an EIP may be of a claim: a claim names it, or the claim in its tag may still get it. One that is
 * changing may be of any.
 */
export function ownersOf(claims: readonly EipClaimEntry[]): (eip: Eip) => boolean {
  const named = new Set(claims.flatMap((entry) => entry.eipIds));
  // A claim without an EIP may have one whose id was lost; an unreadable claim may name any.
  const pending = new Set(
    claims
      .filter(({ claim, eipIds }) => claim === undefined || eipIds.length === 0 || hasIntent(claim))
      .map(({ key }) => claimTag(key)),
  );
  return (eip) => isChanging(eip) || named.has(eip.eipId) || pending.has(eip.tags[EIP_TAG.claim] ?? '');
}

function hasIntent(claim: NonNullable<EipClaimEntry['claim']>): boolean {
  return (claim.status?.intents?.length ?? 0) > 0;
}

function isChanging({ status }: Eip): boolean {
  return TRANSITIONAL_STATES.includes(status) || RELEASING_STATES.includes(status);
}

function differs({ claim }: EipClaimEntry, eips: ReadonlyMap<string, Eip>): boolean {
  const { phase, eipID, privateIP, eniID, publicIP } = claim?.status ?? {};
  if (claim === undefined || eipID === undefined || hasIntent(claim)) return false;
  const eip = eips.get(eipID);
  if (eip === undefined) return true;
  if (isChanging(eip)) return false;
  if (phase === 'Bound') return eip.privateIp !== privateIP || eip.eniId !== eniID || eip.publicIp !== publicIP;
  return phase === 'Retained' && eip.publicIp !== publicIP;
}
