import { createHash } from 'node:crypto';
import type { Tags } from '../../cloud/cloud.ts';
import type { ReservedIp } from '../../cloud/reserved-ips.ts';
import { RESERVATION_TAG } from '../../crd/cloud-tags.ts';
import { claimTag, isShortened } from '../eip/eip-identity.ts';

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

/** Tells whether ipamd made a reservation for this claim: only such ones are ever released. */
export function isReservedFor({ tags }: Pick<ReservedIp, 'tags'>, clusterId: string, claimKey: string): boolean {
  return Object.entries(reservationTags(clusterId, claimKey)).every(([key, value]) => tags[key] === value);
}

/**
 * Finds the reservations that ipamd made for this cluster and whose claim is none of `claimKeys`. The name has to be
 * that of the claim in the tag, too: tags alone may have been copied by hand.
 */
export function findOrphanedReservations(
  reservations: readonly ReservedIp[],
  clusterId: string,
  claimKeys: Iterable<string>,
): readonly ReservedIp[] {
  const alive = new Set([...claimKeys].map(claimTag));
  return reservations.filter((one) => {
    const { [RESERVATION_TAG.cluster]: cluster, [RESERVATION_TAG.created]: created } = one.tags;
    const claim = one.tags[RESERVATION_TAG.claim] ?? '';
    const key = claimKeyOf(one.tags);
    const isNamed = key === undefined || one.name === reservationName(clusterId, key);
    return cluster === clusterId && created === 'true' && claim !== '' && isNamed && !alive.has(claim);
  });
}

/** Returns the claim in the tag, `namespace/name`; undefined when there is none, or a digest stands for its end. */
export function claimKeyOf(tags: Tags): string | undefined {
  const key = tags[RESERVATION_TAG.claim] ?? '';
  const [namespace, name, ...rest] = key.split('/');
  return namespace === '' || !name || rest.length > 0 || isShortened(key) ? undefined : key;
}
