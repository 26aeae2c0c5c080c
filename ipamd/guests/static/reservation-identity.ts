import { createHash } from 'node:crypto';
import type { Tags } from '../../../cloud/cloud.ts';
import type { ReservedIp } from '../../../cloud/reserved-ips.ts';
import { claimRefIn, claimTag } from '../../../crd/claim-tag.ts';
import { RESERVATION_TAG } from '../../../crd/cloud-tags.ts';
import { podKeyOf } from '../../cache/pod-facts.ts';

const DIGEST_CHARACTERS = 24;

/** Returns the tags of a reservation for a claim, `namespace/name`. They prove whose it is. */
export function reservationTags(clusterId: string, claimKey: string): Tags {
  return {
    [RESERVATION_TAG.cluster]: clusterId,
    [RESERVATION_TAG.created]: 'true',
    [RESERVATION_TAG.claim]: claimTag(claimKey),
  };
}

/**
 * Returns the name of the reservation for a claim: always the same, so that it is found again when the answer with its
 * id was lost, and also for a claim that was made again.
 */
export function reservationName(clusterId: string, claimKey: string): string {
  const digest = createHash('sha256').update(`${clusterId} ${claimKey}`).digest('hex');
  return `tke-ip-${digest.slice(0, DIGEST_CHARACTERS)}`;
}

/** Reports whether ipamd made a reservation for this claim: only such ones are ever released. */
export function isReservedFor({ tags }: Pick<ReservedIp, 'tags'>, clusterId: string, claimKey: string): boolean {
  return Object.entries(reservationTags(clusterId, claimKey)).every(([key, value]) => tags[key] === value);
}

/**
 * Reports whether ipamd made a reservation for this cluster, for whichever claim. The name has to be that of the claim in the tag,
 * too: tags alone may have been copied by hand.
 */
export function isReservedHere({ name, tags }: Pick<ReservedIp, 'name' | 'tags'>, clusterId: string): boolean {
  const {
    [RESERVATION_TAG.cluster]: cluster,
    [RESERVATION_TAG.created]: created,
    [RESERVATION_TAG.claim]: claim,
  } = tags;
  const key = claimKeyOf(tags);
  const isNamed = key === undefined || name === reservationName(clusterId, key);
  return cluster === clusterId && created === 'true' && (claim ?? '') !== '' && isNamed;
}

/** Returns the claim in the tag, `namespace/name`; undefined when there is none, or a digest stands for its end. */
export function claimKeyOf(tags: Tags): string | undefined {
  const ref = claimRefIn(tags[RESERVATION_TAG.claim]);
  return ref && podKeyOf(ref);
}
