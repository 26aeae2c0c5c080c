import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import { OWNER_TAG } from '../../crd/cloud-tags.ts';
import { ownerOf } from './plan-load-balancer.ts';

/** A load balancer of this cluster whose Service does not exist any more. */
export type OrphanBalancer = { readonly balancer: LoadBalancer; readonly uid: string };

/** What may be an orphan: it has been there for so long, by the clock of the cloud. */
const MIN_AGE_MS = 900_000;

/**
 * Finds the load balancers that this program made for Services of this cluster that do not exist any more. One without the
 * tag of the owner, of another cluster, or of an unknown age is none.
 * @param uids those of all Services, whatever their type
 * @param nowMs wall clock
 */
export function findOrphanBalancers(
  clusterId: string,
  balancers: readonly LoadBalancer[],
  uids: ReadonlySet<string>,
  nowMs: number,
): readonly OrphanBalancer[] {
  return balancers.flatMap((balancer) => {
    const uid = orphanUidOf(clusterId, balancer, uids, nowMs);
    return uid === undefined ? [] : [{ balancer, uid }];
  });
}

/** Returns the uid of the Service that something was made for, and that does not exist any more; undefined: it is no orphan. */
export function orphanUidOf(
  clusterId: string,
  made: Pick<LoadBalancer, 'tags' | 'createdAtMs'>,
  uids: ReadonlySet<string>,
  nowMs: number,
): string | undefined {
  const uid = uidOf(clusterId, made);
  const isOld = made.createdAtMs > 0 && nowMs - made.createdAtMs >= MIN_AGE_MS;
  return uid === undefined || uids.has(uid) || !isOld ? undefined : uid;
}

/** Tells for which Service of this cluster a load balancer or a security group was made; undefined: for none, or not by this program. */
export function uidOf(clusterId: string, { tags }: Pick<LoadBalancer, 'tags'>): string | undefined {
  const owner = tags[OWNER_TAG] ?? '';
  const prefix = ownerOf(clusterId, '');
  return owner.startsWith(prefix) && owner.length > prefix.length ? owner.slice(prefix.length) : undefined;
}
