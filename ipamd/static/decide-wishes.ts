import type { ClaimSource, ClaimWish } from '../nec/claim-wish.ts';
import type { ClaimPod, ClaimView, Place } from './claim-view.ts';

/** An address that has been Releasing for so long without being taken over is unassigned there. */
const AWAIT_MS = 20_000;

/** The address that a claim has or is to have; `ip` absent: any. */
export type ClaimAddress = {
  readonly ip: string | undefined;
  /** Absent: any of the node's. */
  readonly subnetIds: readonly string[] | undefined;
};

/** Decides the requests of a claim that ends: no Pod may use its address, and every node unassigns it. */
export function decideFreeing(view: ClaimView, mode: ClaimWish['mode']): ReadonlyMap<string, ClaimWish> {
  return byNode(view.places, ({ nodeName, ip }) => ({
    ...headOf(view, mode, ip),
    want: 'free',
    ...takeOver(view, nodeName),
  }));
}

/** Decides the requests of a claim that no Pod uses now: its address stays where it is. */
export function decideKeeping(view: ClaimView, mode: ClaimWish['mode']): ReadonlyMap<string, ClaimWish> {
  return byNode(view.places, ({ ip, nodeName, isReleasing }) =>
    // A released address cannot stay: it is unassigned, and is on no ENI until a Pod comes.
    isReleasing
      ? { ...headOf(view, mode, ip), want: 'elsewhere', isAwaited: isFetching(view), ...takeOver(view, nodeName) }
      : { ...headOf(view, mode, ip), want: 'keep' },
  );
}

/** Decides the requests of a claim whose Pod is on a node that may have the address. */
export function decideServing(view: ClaimView, pod: ClaimPod, address: ClaimAddress): ReadonlyMap<string, ClaimWish> {
  const { mode, securityGroupIds } = pod.rule;
  const others = view.places.filter(({ nodeName }) => nodeName !== pod.nodeName);
  const source = sourceOf(view, others);
  const wishes = new Map(
    byNode(others, (place) => ({
      ...headOf(view, mode, place.ip),
      want: 'elsewhere',
      isAwaited: isAwaited(view, pod.nodeName, place),
      ...takeOver(view, place.nodeName),
    })),
  );
  wishes.set(pod.nodeName, {
    ...headOf(view, mode, address.ip),
    want: 'here',
    podUid: pod.uid,
    ...(address.subnetIds === undefined ? {} : { subnetIds: address.subnetIds }),
    ...(source === undefined ? {} : { source }),
    ...(securityGroupIds === undefined ? {} : { securityGroupIds }),
  });
  return wishes;
}

function headOf({ key }: ClaimView, mode: ClaimWish['mode'], ip: string | undefined) {
  return { key, mode, ...(ip === undefined ? {} : { ip }) };
}

function byNode(places: readonly Place[], wishOf: (place: Place) => ClaimWish): ReadonlyMap<string, ClaimWish> {
  return new Map(places.map((place) => [place.nodeName, wishOf(place)] as const));
}

function takeOver({ nodeOf, takeOverAfterMs }: ClaimView, nodeName: string): Pick<ClaimWish, 'mayTakeOver'> {
  const { unreachableForMs } = nodeOf(nodeName);
  return unreachableForMs > 0 && unreachableForMs >= takeOverAfterMs ? { mayTakeOver: true } : {};
}

function sourceOf({ calls }: ClaimView, [place]: readonly Place[]): ClaimSource | undefined {
  if (place === undefined) return undefined;
  const { nodeName, eniId, isAttached, isReleasing } = place;
  // An address that its own node is unassigning must not be moved as well.
  const isLeaving = calls.some((call) => call.action === 'UnassignPrivateIpAddresses' && call.nodeName === nodeName);
  return { nodeName, eniId, isAttached, isReleased: isReleasing && !isLeaving };
}

function isFetching({ calls }: ClaimView): boolean {
  return calls.some(({ action }) => action === 'MigratePrivateIpAddress');
}

function isAwaited(view: ClaimView, target: string, place: Place): boolean {
  const isThere = view.places.some(({ nodeName }) => nodeName === target);
  if (isThere || isFetching(view)) return true;
  const hasRoom = place.subnetId !== undefined && view.nodeOf(target).subnetsWithRoom.has(place.subnetId);
  return hasRoom && place.isAttached && view.releasingForMs < AWAIT_MS;
}
