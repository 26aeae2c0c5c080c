import type { CallContext } from '../../../cloud/cloud.ts';
import { claimTag } from '../../../crd/claim-tag.ts';
import { EIP_TAG } from '../../../crd/cloud-tags.ts';
import type { EipDeps } from './eip-deps.ts';
import { isMadeFor } from './eip-identity.ts';
import type { EipSnapshot } from './eip-view.ts';

/** Describes EIPs by id, and those that were allocated for a claim. @throws CloudError */
export async function observeEips(
  { cloud, leader, claimCache }: Pick<EipDeps, 'cloud' | 'leader' | 'claimCache'>,
  key: string,
  eipIds: readonly string[],
  context: CallContext,
): Promise<EipSnapshot> {
  const tag = { key: EIP_TAG.claim, value: claimTag(key) };
  const [named, tagged] = await Promise.all([
    eipIds.length === 0 ? [] : cloud.eips.describe({ eipIds }, context),
    cloud.eips.describe({ tag }, context),
  ]);
  const made = tagged.filter((eip) => isMadeFor(eip, leader.clusterId, key));
  return {
    byId: new Map([...tagged, ...named].map((eip) => [eip.eipId, eip])),
    made: made.toSorted((one, other) => (one.eipId < other.eipId ? -1 : 1)),
    rivals: claimCache.rivalsOf(key),
  };
}
