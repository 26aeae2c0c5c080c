/**
 * A sandbox that ended sooner than this after it got its address, milliseconds. No container has served in it: kubelet
 * starts the first one after the sandbox is ready, sees it end with its next look a second later, and then stops the
 * sandbox. What ends sooner is a sandbox that failed after our ADD, in another plugin of the chain or in the runtime, and
 * kubelet makes the next one at once.
 */
const BRIEF_MS = 2_000;

/**
 * Tells whether the rest of a released address is brief: its owner had it for less than two seconds, and it had rested
 * before. The address cools for its full time like any other, because something may have been sent to it. But its rest
 * is no demand, or a Pod that fails in a loop would collect an address with each try; and where no other address is free
 * it ends at once, once connection tracking is flushed: there was no server in it that others still send to. A load
 * balancer can have it as a target only after its Pod was ready: then it is held back as any other.
 */
export function isBriefRest({ leasedAtMs }: { readonly leasedAtMs?: number | undefined }, nowMs: number): boolean {
  return leasedAtMs !== undefined && nowMs - leasedAtMs < BRIEF_MS;
}

/**
 * Bounds what counts as needed now by the Pods that the node can run: an address that cools beyond them is for a Pod that
 * cannot come before another one ends. Pods that have or await an address count whatever the bound says.
 * @param living Pods that have an address or wait for one.
 * @param maxPods Allocatable Pods of the Node; undefined while it was not read: no bound.
 */
export function boundByPods(needed: number, living: number, maxPods: number | undefined): number {
  return maxPods === undefined ? needed : Math.min(needed, Math.max(living, maxPods));
}
