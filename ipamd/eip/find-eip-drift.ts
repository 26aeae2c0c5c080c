import type { Eip } from '../../cloud/cloud.ts';
import type { EipClaimEntry } from './claim-book.ts';
import { claimTag, EIP_TAG, isMadeHere } from './eip-identity.ts';
import { IS_GOING, IS_MOVING } from './eip-view.ts';

/** What one look at all EIPs of the cluster tells. */
export type EipDrift = {
  /** Claims whose EIP is not as they say. */
  readonly suspects: readonly string[];
  /** EIPs that were made for this cluster and that no claim has. */
  readonly orphans: readonly Eip[];
};

/**
 * Compares all EIPClaims with the EIPs that carry this cluster's mark, and with those that claims name. An EIP is
 * somebody's as long as a claim names it, or a claim of the name in its tag is still looking for its own. Pure.
 */
export function findEipDrift(
  clusterId: string,
  claims: readonly EipClaimEntry[],
  eips: ReadonlyMap<string, Eip>,
): EipDrift {
  const named = new Set(claims.flatMap((entry) => entry.eipIds));
  // One that has no EIP yet may have one whose id never arrived; one that cannot be read may mean any.
  const looking = new Set(
    claims
      .filter(({ claim, eipIds }) => claim === undefined || eipIds.length === 0 || hasIntent(claim))
      .map(({ key }) => claimTag(key)),
  );
  const isNobodys = (eip: Eip): boolean =>
    isMadeHere(eip, clusterId) && !named.has(eip.eipId) && !looking.has(eip.tags[EIP_TAG.claim] ?? '');
  return {
    suspects: claims.filter((entry) => differs(entry, eips)).map(({ key }) => key),
    orphans: [...eips.values()].filter((eip) => !isAway(eip) && isNobodys(eip)),
  };
}

function hasIntent(claim: NonNullable<EipClaimEntry['claim']>): boolean {
  return (claim.status?.intents?.length ?? 0) > 0;
}

function isAway({ status }: Eip): boolean {
  return IS_MOVING.includes(status) || IS_GOING.includes(status);
}

function differs({ claim }: EipClaimEntry, eips: ReadonlyMap<string, Eip>): boolean {
  const { phase, eipID, privateIP, eniID, publicIP } = claim?.status ?? {};
  if (claim === undefined || eipID === undefined || hasIntent(claim)) return false;
  const eip = eips.get(eipID);
  if (eip === undefined) return true;
  if (isAway(eip)) return false;
  if (phase === 'Bound') return eip.privateIp !== privateIP || eip.eniId !== eniID || eip.publicIp !== publicIP;
  return phase === 'Retained' && eip.publicIp !== publicIP;
}
