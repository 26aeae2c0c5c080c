import type { Eip, Tags } from '../../../cloud/cloud.ts';
import { claimTag } from '../../../crd/claim-tag.ts';
import { EIP_TAG } from '../../../crd/cloud-tags.ts';

/**
 * Returns the tags of an EIP that is allocated for a claim. They identify the EIP when the answer with its id was lost.
 */
export function eipTags(clusterId: string, claimKey: string): Tags {
  return { [EIP_TAG.cluster]: clusterId, [EIP_TAG.created]: 'true', [EIP_TAG.claim]: claimTag(claimKey) };
}

/**
 * Returns the name and ClientToken of an allocation: the same for each try of it, and different from other allocations.
 */
export function eipName(claimUid: string, allocation: number): string {
  return `tke-eip-${claimUid.slice(0, MAX_UID_LENGTH)}-${allocation}`;
}

/** Longest part of the uid, because a ClientToken has at most 64 characters. */
const MAX_UID_LENGTH = 40;

/** Reports whether ipamd allocated an EIP for this claim: only such EIPs are ever released for it. */
export function isMadeFor(eip: Pick<Eip, 'tags'>, clusterId: string, claimKey: string): boolean {
  const expected = Object.entries(eipTags(clusterId, claimKey));
  return expected.every(([key, value]) => eip.tags[key] === value);
}

/** Reports whether ipamd allocated an EIP for this cluster: TKE sets the same tags but for that of the claim. */
export function isMadeHere(eip: Pick<Eip, 'tags'>, clusterId: string): boolean {
  const { [EIP_TAG.cluster]: cluster, [EIP_TAG.created]: created, [EIP_TAG.claim]: claim = '' } = eip.tags;
  return cluster === clusterId && created === 'true' && claim !== '';
}
