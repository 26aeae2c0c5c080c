import type { ClaimSource, ClaimWish } from '../nec/claim-wish.ts';
import type { ClaimPod, ClaimView, Place } from './claim-view.ts';

/** An address that is on its way off an ENI for so long, with nobody fetching it, is simply given up there. */
const AWAIT_MS = 20_000;

/** The address that a claim has or is to have; `ip` absent: any. */
export type ClaimAddress = {
  readonly ip: string | undefined;
  /** Absent: any of the node's. */
  readonly subnetIds: readonly string[] | undefined;
};

/** Decides the wishes of a claim that ends: nobody may use its address, and every node gives it back. Pure. */
export function decideFreeing(view: ClaimView, mode: ClaimWish['mode']): ReadonlyMap<string, ClaimWish> {
  return byNode(view.places, ({ nodeName, ip }) => ({
    ...headOf(view, mode, ip),
    want: 'free',
    ...takeOver(view, nodeName),
  }));
}

/** Decides the wishes of a claim that nobody uses now: its address stays where it is. Pure. */
export function decideKeeping(view: ClaimView, mode: ClaimWish['mode']): ReadonlyMap<string, ClaimWish> {
  return byNode(view.places, ({ ip, nodeName, isReleasing }) =>
    // What an agent has let go of cannot stay: it goes off the ENI, and is on none until a Pod comes.
    isReleasing
      ? { ...headOf(view, mode, ip), want: 'elsewhere', isAwaited: isFetching(view), ...takeOver(view, nodeName) }
      : { ...headOf(view, mode, ip), want: 'keep' },
  );
}

/** Decides the wishes of a claim whose Pod is on a node that may have the address. Pure. */
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
  // What is being taken off by its own node must not be fetched as well.
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
