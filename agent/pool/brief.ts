/** A sandbox that ended sooner than this failed after our ADD, unless it ran something that was over at once. Milliseconds. */
const BRIEF_MS = 2_000;

/**
 * The status of a Pod may lag behind its sandbox: that a Pod has no address says nothing of a younger sandbox.
 * Milliseconds.
 */
const SETTLED_MS = 5_000;

/**
 * What the API server shows of the Pod of a lease when the lease ends.
 * - `unknown`: nothing that proves anything. The Pod is not followed, absent, another one of its name, about to end, or
 *   its status has the address.
 * - `another`: its status does not have the address; it has another one, or its containers have run.
 * - `none-yet`: its status has no address, but the API server was not heard in the last seconds.
 * - `none`: its status has no address, and the API server was heard in the last seconds.
 */
export type PodFinding = 'unknown' | 'another' | 'none-yet' | 'none';

/** The part of an address, or of a whole ENI, that says whether its sandbox failed. */
export type BriefMarks = {
  /**
   * When its owner got it, milliseconds since boot. Only while leased; absent where that is not known, where it had not
   * rested before, and once the status of a Pod had the address.
   */
  readonly leasedAtMs?: number;
  /** Uid of its last Pod, while it may turn out that its sandbox failed, or when it did. Only while cooling. */
  readonly failedPod?: string;
  /** The sandbox of its last owner failed: its rest is no demand while it can be given. Only while cooling. */
  readonly isBrief?: true;
};

/** How a lease ends, as far as its rest depends on it. */
export type LeaseEnd = {
  readonly nowMs: number;
  /** Uid of its Pod; absent or empty where that is not known. */
  readonly podUid?: string;
  /** `claimKey` of its Pod; absent where that is not known. */
  readonly podKey?: string;
  /** Absent: `unknown`. */
  readonly finding?: PodFinding;
};

/** What the watch of the node's Pods shows now. */
export type ShownPods = {
  /** Addresses in the status of any Pod. */
  readonly ips: ReadonlySet<string>;
  /** Uids of the Pods that are not about to end. */
  readonly uids: ReadonlySet<string>;
};

/**
 * Returns the marks of a rest that begins. The rest is brief if the sandbox failed after our ADD: the status of its Pod
 * never had the address, and either the sandbox lived for less than two seconds, or the Pod has no address at all
 * although the sandbox lived for more than five. The address cools for its full time like any other, because something
 * may have been sent to it. But its rest is no demand, or a Pod that fails in a loop would collect an address with each
 * try; and where no other address is free it ends early, once connection tracking is flushed.
 */
export function marksOfRest(
  { leasedAtMs }: BriefMarks,
  { nowMs, podUid = '', finding = 'unknown' }: LeaseEnd,
): Pick<BriefMarks, 'failedPod' | 'isBrief'> {
  if (leasedAtMs === undefined || podUid === '' || finding === 'unknown') return {};
  const livedMs = nowMs - leasedAtMs;
  if (livedMs < BRIEF_MS) return { failedPod: podUid, isBrief: true };
  if (livedMs <= SETTLED_MS || finding === 'another') return {};
  return finding === 'none' ? { failedPod: podUid, isBrief: true } : { failedPod: podUid };
}

/** Returns it without any mark. */
export function withoutMarks<T extends BriefMarks>(one: T): Omit<T, keyof BriefMarks> {
  const { leasedAtMs: _since, failedPod: _pod, isBrief: _brief, ...rest } = one;
  return rest;
}

/** Returns it without the marks that what is shown contradicts; the same object when it contradicts none. */
export function withoutContradicted<T extends BriefMarks>(
  one: T,
  ips: readonly string[],
  shown: ShownPods,
): T | Omit<T, keyof BriefMarks> {
  const { leasedAtMs, failedPod } = one;
  if (leasedAtMs === undefined && failedPod === undefined) return one;
  const isGone = failedPod !== undefined && !shown.uids.has(failedPod);
  return isGone || ips.some((ip) => shown.ips.has(ip)) ? withoutMarks(one) : one;
}

/** Reports whether it rests after a sandbox of the Pod of which only the API server can tell whether it failed. */
export function awaitsProof({ failedPod, isBrief }: BriefMarks, podUid: string): boolean {
  return failedPod !== undefined && failedPod === podUid && isBrief !== true;
}

/** Returns it with a brief rest, if that awaited a proof for the Pod; the same object otherwise. */
export function withProof<T extends BriefMarks>(one: T, podUid: string): T {
  return awaitsProof(one, podUid) ? { ...one, isBrief: true } : one;
}

/**
 * Returns how many of the cooling addresses are demand: their Pods have ended, and the node can run no more successors
 * at a time than this.
 * @param maxPods Allocatable Pods of the Node; undefined while it was not read: no bound.
 */
export function coolingDemand(cooling: number, maxPods: number | undefined): number {
  return Math.min(cooling, maxPods ?? cooling);
}
