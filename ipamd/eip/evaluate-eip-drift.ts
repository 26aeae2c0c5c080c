import type { Eip } from '../../cloud/cloud.ts';
import { EIP_TAG } from '../../crd/cloud-tags.ts';
import type { EipClaimEntry } from './eip-claim-cache.ts';
import { claimTag, isMadeHere } from './eip-identity.ts';
import { RELEASING_STATES, TRANSITIONAL_STATES } from './eip-view.ts';

/** Result of comparing all EIPs of the cluster with the claims. */
type EipDrift = {
  /** Claims whose EIP differs from their status. */
  readonly differing: readonly string[];
  /** EIPs that were allocated for this cluster and that no claim has. */
  readonly orphans: readonly Eip[];
};

/**
 * Compares all EIPClaims with the EIPs that have this cluster's tags, and with those that claims name. An EIP is no
 * orphan as long as a claim names it, or the claim in its tag may still get it.
 */
export function evaluateEipDrift(
  clusterId: string,
  claims: readonly EipClaimEntry[],
  eips: ReadonlyMap<string, Eip>,
): EipDrift {
  const named = new Set(claims.flatMap((entry) => entry.eipIds));
  // A claim without an EIP may have one whose id was lost; an unreadable claim may name any.
  const pending = new Set(
    claims
      .filter(({ claim, eipIds }) => claim === undefined || eipIds.length === 0 || hasIntent(claim))
      .map(({ key }) => claimTag(key)),
  );
  const isOrphan = (eip: Eip): boolean =>
    isMadeHere(eip, clusterId) && !named.has(eip.eipId) && !pending.has(eip.tags[EIP_TAG.claim] ?? '');
  return {
    differing: claims.filter((entry) => differs(entry, eips)).map(({ key }) => key),
    orphans: [...eips.values()].filter((eip) => !isChanging(eip) && isOrphan(eip)),
  };
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
