import { type CiliumAllocation, type CiliumNodeIpam, NO_OWNER } from '../../../crd/cilium-node.ts';
import { isIpv4 } from '../../decide/with-enis.ts';
import type { CiliumAddress, CiliumReleaseDecision } from './decide-cilium-release.ts';
import type { SuppliedIp } from './find-supplied-ips.ts';

/** All inputs of the decision about a CiliumNode's pool. */
export type CiliumPoolView = {
  readonly ipam: CiliumNodeIpam;
  readonly supply: readonly SuppliedIp[];
  /** What the NodeENIConfig offers back now: assignment ids by address. */
  readonly offered: ReadonlyMap<string, string>;
  /** The node's live Pods by the API server, `NAMESPACE/POD` by their addresses. */
  readonly podIps: ReadonlyMap<string, string>;
  /** All of the node's live Pods, also those without an address. */
  readonly podKeys: ReadonlySet<string>;
  /** Addresses that load balancers may still have as targets. */
  readonly registered: ReadonlySet<string>;
  /** Addresses that are in the pools of other nodes. */
  readonly elsewhere: ReadonlySet<string>;
  /** Free addresses that the NodeENIConfig wants at least and at most: for a CiliumNode that names no number. */
  readonly warm: { readonly min: number; readonly max: number };
  /** Fewest addresses that stay on the node. */
  readonly floor: number;
};

/** What a node needs, and what it has beside that. */
export type CiliumPoolDecision = {
  /** Addresses that the node needs on its ENIs: users, and as many free ones as it wants. */
  readonly desired: number;
  /** Free addresses above what the node is to have; negative: so many are missing. */
  readonly spare: number;
  /** All addresses of its ENIs and its pool, those first that are best given back; without those of `held`. */
  readonly addresses: readonly CiliumAddress[];
  /** In the pool and on none of the node's ENIs: edited by hand, or lost. */
  readonly strays: readonly string[];
  /** On an ENI of the node, and kept out of its pool because the pool of another node has it. */
  readonly held: readonly string[];
  /** Addresses that a Pod could get now. */
  readonly free: number;
};

/** Cilium takes two addresses before any Pod: for its router and for the health check. */
export const OWN_ADDRESSES = 2;

/**
 * Decides a node's demand, and which of its addresses are given back first.
 * @see Cilium: deficit = pre-allocate - (pool - used), excess = (pool - used) - (pre-allocate + max-above-watermark)
 */
export function decideCiliumPool(view: CiliumPoolView): CiliumPoolDecision {
  const { ipam, supply } = view;
  const supplied = new Set(supply.map(({ ip }) => ip));
  const strays = [...ipam.pool.keys()].filter((ip) => !supplied.has(ip));
  const isHeld = ({ ip }: SuppliedIp): boolean => view.elsewhere.has(ip) && !ipam.pool.has(ip);
  const known = supply.filter((one) => !isHeld(one));
  const isCounted = (one: SuppliedIp): boolean =>
    one.isAssigned && one.owner === undefined && isIpv4(one.ip) && !one.isDraining;
  // Only these are interchangeable, and counted by the demand of a NodeENIConfig.
  const pooled = known.filter(isCounted);
  const users = pooled.filter(({ ip }) => isUsed(view, ip)).length;
  const free = pooled.filter(({ ip }) => !isUsed(view, ip) && !ipam.releases.has(ip)).length;
  // What the agent itself will take is not in `used` before it has started.
  const own = ipam.used.size === 0 ? OWN_ADDRESSES : 0;
  const wanted = own + (ipam.preAllocate ?? view.warm.min);
  // What is being given up comes back in half a minute at best: too long for Pods that wait.
  const goingIps = free === 0 ? pooled.length - users : 0;
  const least = Math.max(ipam.minAllocate ?? 0, view.floor);
  return {
    // Held ones are on the node's ENIs and serve no Pod: they come on top.
    desired:
      Math.max(users + wanted + goingIps, ipam.minAllocate ?? 0) +
      supply.filter((one) => isHeld(one) && isCounted(one)).length,
    spare: spareOf({ free, wanted, above: aboveOf(view), aboveLeast: users + free - least }),
    addresses: [...orderedForRelease(view, known), ...strays.map(strayAddress)],
    strays,
    held: supply.filter((one) => one.isAssigned && isHeld(one)).map(({ ip }) => ip),
    free,
  };
}

/**
 * Returns the entries of a pool with these addresses: the ENI as `resource`, and as `owner` the Pod of a static address.
 * A pin stays until its Pod is gone, for without it another Pod could get the address. So an address that joins the pool while a
 * Pod has it is pinned to that Pod, and one that is on no ENI and out of use to none.
 */
export function ciliumPoolOf(
  view: CiliumPoolView,
  { pool: ips, pins }: Pick<CiliumReleaseDecision, 'pool' | 'pins'>,
): ReadonlyMap<string, CiliumAllocation> {
  const supply = new Map(view.supply.map((one) => [one.ip, one]));
  return new Map(
    [...ips].map((ip) => {
      const now = view.ipam.pool.get(ip);
      const supplied = supply.get(ip);
      const isPinned = now?.owner !== undefined && view.podKeys.has(now.owner);
      const isOut = supplied?.isAssigned !== true && !isUsed(view, ip);
      if (supplied === undefined) return [ip, { ...now, ...(isOut && !isPinned ? { owner: NO_OWNER } : {}) }];
      const joiner = now === undefined ? view.podIps.get(ip) : undefined;
      const owner =
        pins.get(ip) ?? (isPinned ? now.owner : (supplied.owner ?? joiner ?? (isOut ? NO_OWNER : undefined)));
      return [ip, { ...(owner === undefined ? {} : { owner }), resource: supplied.eniId }];
    }),
  );
}

/** `used` may be 15 s old: a Pod of the API server counts before it is in there. */
function isUsed({ ipam, podIps }: CiliumPoolView, ip: string): boolean {
  return ipam.used.has(ip) || podIps.has(ip);
}

function aboveOf({ ipam, warm }: CiliumPoolView): number {
  return ipam.maxAboveWatermark ?? (ipam.preAllocate === undefined ? Math.max(0, warm.max - warm.min) : 0);
}

function spareOf(counts: {
  readonly free: number;
  readonly wanted: number;
  readonly above: number;
  readonly aboveLeast: number;
}): number {
  const { free, wanted, above, aboveLeast } = counts;
  const missing = Math.min(free - wanted, aboveLeast);
  return missing < 0 ? missing : Math.max(0, Math.min(free - wanted - above, aboveLeast));
}

/** Those that have to go come first, then those of the ENI with fewest users: so that an ENI becomes empty. */
function orderedForRelease(view: CiliumPoolView, supply: readonly SuppliedIp[]): readonly CiliumAddress[] {
  const usersOf = new Map<string, number>();
  for (const { ip, eniId } of supply) if (isUsed(view, ip)) usersOf.set(eniId, (usersOf.get(eniId) ?? 0) + 1);
  return supply
    .map((one) => ({ ...addressOf(view, one), users: usersOf.get(one.eniId) ?? 0 }))
    .sort((one, other) => Number(other.mustGo) - Number(one.mustGo) || one.users - other.users || compare(one, other))
    .map(({ users: _users, ...address }) => address);
}

function addressOf({ offered, registered }: CiliumPoolView, one: SuppliedIp): CiliumAddress {
  const { ip, owner, assignmentId, isLeaving } = one;
  const mustGo = one.isDraining ? owner === undefined || isLeaving : isLeaving;
  return {
    ip,
    place: one.isAssigned ? 'assigned' : 'leaving',
    isOffered: offered.get(ip) === assignmentId,
    // The demand counts no IPv6 addresses: they go with their ENI.
    mustStay: owner === undefined ? registered.has(ip) || (!isIpv4(ip) && !mustGo) : !isLeaving,
    mustGo,
  };
}

function strayAddress(ip: string): CiliumAddress {
  return { ip, place: 'gone', isOffered: false, mustStay: false, mustGo: true };
}

function compare({ ip }: CiliumAddress, other: CiliumAddress): number {
  return ip < other.ip ? -1 : ip > other.ip ? 1 : 0;
}
