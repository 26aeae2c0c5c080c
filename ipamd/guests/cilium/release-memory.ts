import {
  type CiliumAllocations,
  type CiliumNodeIpam,
  RELEASE_STATE,
  type ReleaseState,
} from '../../../crd/cilium-node.ts';

/** What one ipamd has seen of a CiliumNode. It is lost with the process; then every time begins again. Monotonic milliseconds. */
export type ReleaseMemory = {
  /** When each address was in use last. Of one that was never seen in use: when it was seen first. */
  readonly usedMs: ReadonlyMap<string, number>;
  /** Since when each entry of `status.ipam.release-ips` has its state. */
  readonly entries: ReadonlyMap<string, { readonly state: ReleaseState; readonly sinceMs: number }>;
  /** `status.ipam.used` as last seen; undefined before the first look. */
  readonly used: CiliumAllocations | undefined;
  /**
   * When the node's agent last wrote something, with addresses in use. Undefined while nothing was seen: what the object
   * has at the first look may be of an agent that has ended.
   */
  readonly aliveMs: number | undefined;
};

/** Of a CiliumNode that was not looked at yet. */
export const NOTHING_SEEN: ReleaseMemory = {
  usedMs: new Map(),
  entries: new Map(),
  used: undefined,
  aliveMs: undefined,
};

/** What is seen at one look. */
type Look = {
  readonly node: CiliumNodeIpam;
  /** Addresses of the node's ENIs and of its pool. */
  readonly addresses: readonly { readonly ip: string }[];
  /** The node's live Pods by the API server, by their addresses; undefined while they are unknown. */
  readonly podIps: ReadonlyMap<string, string> | undefined;
  readonly monotonicMs: number;
};

/** Adds one look at a CiliumNode to what was seen. Forgets addresses that are neither listed nor have an entry. */
export function rememberReleases(before: ReleaseMemory, { node, addresses, podIps, monotonicMs }: Look): ReleaseMemory {
  const known = new Set([...addresses.map(({ ip }) => ip), ...node.releases.keys()]);
  const isInUse = (ip: string): boolean =>
    podIps === undefined || podIps.has(ip) || node.used.has(ip) || node.releases.get(ip) === RELEASE_STATE.refused;
  const isAlive = node.used.size > 0 && hasAgentWritten(before, node);
  return {
    usedMs: new Map([...known].map((ip) => [ip, isInUse(ip) ? monotonicMs : (before.usedMs.get(ip) ?? monotonicMs)])),
    entries: new Map(
      [...node.releases].map(([ip, state]) => {
        const seen = before.entries.get(ip);
        return [ip, seen?.state === state ? seen : { state, sinceMs: monotonicMs }];
      }),
    ),
    used: node.used,
    aliveMs: isAlive ? monotonicMs : before.aliveMs,
  };
}

/** Reports whether what the agent alone writes has changed since the last look. */
function hasAgentWritten({ used, entries }: ReleaseMemory, node: CiliumNodeIpam): boolean {
  if (used === undefined) return false;
  const isSame =
    used.size === node.used.size && [...used].every(([ip, { owner }]) => node.used.get(ip)?.owner === owner);
  const isAnswered = [...entries].some(([ip, { state }]) => {
    const now = node.releases.get(ip);
    return state === RELEASE_STATE.marked && (now === RELEASE_STATE.ready || now === RELEASE_STATE.refused);
  });
  return !isSame || isAnswered;
}
