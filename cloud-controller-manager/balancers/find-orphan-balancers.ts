import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import { OWNER_TAG } from '../../crd/cloud-tags.ts';
import { type OwnerKind, ownerOf } from './balancer-owner.ts';
import { isKept } from './kept-balancer.ts';

/** A load balancer of this cluster whose owner does not exist any more. */
export type OrphanBalancer = { readonly balancer: LoadBalancer; readonly kind: OwnerKind; readonly uid: string };

/** The uids of all objects of the kinds that are looked at. What was made for another kind is no orphan. */
export type OwnerUids = ReadonlyMap<OwnerKind, ReadonlySet<string>>;

/** What may be an orphan: it has been there for so long, by the clock of the cloud. */
const MIN_AGE_MS = 900_000;

/**
 * Finds the load balancers that this program made for objects of this cluster that do not exist any more. One without the
 * tag of the owner, of another cluster, or of an unknown age is none.
 * @param uids those of all objects, whether they have load balancers or not
 * @param nowMs wall clock
 */
export function findOrphanBalancers(
  clusterId: string,
  balancers: readonly LoadBalancer[],
  uids: OwnerUids,
  nowMs: number,
): readonly OrphanBalancer[] {
  return balancers.flatMap((balancer) =>
    [...uids].flatMap(([kind, its]) => {
      const uid = orphanUidOf(clusterId, balancer, kind, its, nowMs);
      return uid === undefined || isKept(balancer) ? [] : [{ balancer, kind, uid }];
    }),
  );
}

/** Returns the uid of the owner that something was made for, and that does not exist any more; undefined: it is no orphan. */
export function orphanUidOf(
  clusterId: string,
  made: Pick<LoadBalancer, 'tags' | 'createdAtMs'>,
  kind: OwnerKind,
  uids: ReadonlySet<string>,
  nowMs: number,
): string | undefined {
  const uid = uidOf(clusterId, made, kind);
  const isOld = made.createdAtMs > 0 && nowMs - made.createdAtMs >= MIN_AGE_MS;
  return uid === undefined || uids.has(uid) || !isOld ? undefined : uid;
}

/** Tells for which object of a kind something was made in this cluster; undefined: for none, or not by this program. */
export function uidOf(clusterId: string, { tags }: Pick<LoadBalancer, 'tags'>, kind: OwnerKind): string | undefined {
  const owner = tags[OWNER_TAG] ?? '';
  const prefix = ownerOf(clusterId, '', kind);
  return owner.startsWith(prefix) && owner.length > prefix.length ? owner.slice(prefix.length) : undefined;
}
