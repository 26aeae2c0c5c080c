import {
  type CiliumAllocation,
  type CiliumAllocations,
  type CiliumNodeIpam,
  RELEASE_STATE,
  type ReleaseState,
} from '../../crd/cilium-node.ts';
import type { Lease, LeaseKey } from '../journal/lease.ts';
import { type ClaimMark, ON_LINK_ENI_ID, type Supply } from '../journal/supply.ts';
import type { PoolAddress } from '../pool/pool-state.ts';
import { NODE_OWNERS } from './cilium-supply.ts';

/** The addresses that the node has in use, as `status.ipam.used` shows them. */
export function ciliumUsedOf(
  leases: Iterable<Lease>,
  supply: Supply | undefined,
  pool: CiliumAllocations,
): ReadonlyMap<string, CiliumAllocation> {
  const used = new Map<string, CiliumAllocation>();
  const resourceOf = (ip: string, eniId: string): Pick<CiliumAllocation, 'resource'> => {
    const resource = pool.get(ip)?.resource ?? (eniId === ON_LINK_ENI_ID ? undefined : eniId);
    return resource === undefined ? {} : { resource };
  };
  for (const { eniId, addresses } of supply?.enis ?? []) {
    for (const { ip, claim } of addresses)
      if (isReserved(claim)) used.set(ip, { owner: claim.name, ...resourceOf(ip, eniId) });
  }
  for (const { podNamespace, podName, containerId, addresses } of leases) {
    const owner = podName === '' ? containerId : `${podNamespace}/${podName}`;
    for (const { ip, eniId } of addresses) used.set(ip, { owner, ...resourceOf(ip, eniId) });
  }
  return used;
}

/**
 * The merge patch that makes `status.ipam.used` the addresses in use; undefined when it shows them already.
 * @param shown The field as it is, also entries that cannot be read.
 */
export function usedPatchOf(
  used: ReadonlyMap<string, CiliumAllocation>,
  shown: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> | undefined {
  const changed = [...used].filter(([ip, entry]) => !isSame(shown[ip], entry));
  const gone = Object.keys(shown).filter((ip) => !used.has(ip));
  if (changed.length === 0 && gone.length === 0) return undefined;
  const entries = changed.map(([ip, { owner = null, resource = null }]) => [ip, { owner, resource }]);
  return { status: { ipam: { used: Object.fromEntries([...entries, ...gone.map((ip) => [ip, null])]) } } };
}

function isSame(shown: unknown, { owner, resource }: CiliumAllocation): boolean {
  if (typeof shown !== 'object' || shown === null) return false;
  const { owner: shownOwner, resource: shownResource } = shown as CiliumAllocation;
  return shownOwner === owner && shownResource === resource;
}

/** What becomes of an entry of `status.ipam.release-ips`; `to` absent: it is dropped. */
type ReleaseAnswer = { readonly ip: string; readonly from: ReleaseState; readonly to?: ReleaseState };

/** What decides about the answers. */
type ReleaseFacts = {
  readonly ipam: Pick<CiliumNodeIpam, 'pool' | 'releases'>;
  readonly addresses: ReadonlyMap<string, PoolAddress>;
  readonly leases: ReadonlyMap<LeaseKey, Lease>;
  /** Addresses of the pool that are not served on this node. */
  readonly refused: ReadonlySet<string>;
  /** The supply in force is in the journal: what it has out of use stays so after a restart. */
  readonly isRecorded: boolean;
};

/**
 * Answers the marks of an operator. An address is given up only when it is out of use by the recorded supply; one in use,
 * cooling, reserved or not in the pool is kept. One in use is kept also where it was given up before: the journal may
 * have been lost. An address about which nothing is decided yet has no answer.
 */
export function decideReleases({
  ipam,
  addresses,
  leases,
  refused,
  isRecorded,
}: ReleaseFacts): readonly ReleaseAnswer[] {
  const leased = new Set([...leases.values()].flatMap((lease) => lease.addresses.map(({ ip }) => ip)));
  return [...ipam.releases].flatMap(([ip, from]): readonly ReleaseAnswer[] => {
    const inPool = ipam.pool.has(ip);
    const address = addresses.get(ip);
    const isInUse = leased.has(ip) || address?.state === 'leased';
    switch (from) {
      case RELEASE_STATE.released:
        return inPool ? [] : [{ ip, from }];
      case RELEASE_STATE.ready:
        return inPool && isInUse ? [{ ip, from, to: RELEASE_STATE.refused }] : [];
      case RELEASE_STATE.marked:
        // No Pod can get it, and it would be asked for again forever.
        if (inPool && !isInUse && address === undefined && refused.has(ip))
          return [{ ip, from, to: RELEASE_STATE.ready }];
        if (!inPool || isInUse || address === undefined || address.state === 'cooling' || isReserved(address.claim))
          return [{ ip, from, to: RELEASE_STATE.refused }];
        return address.state === 'withdrawn' && address.supplyState === 'releasing' && isRecorded
          ? [{ ip, from, to: RELEASE_STATE.ready }]
          : [];
      default:
        return [];
    }
  });
}

/** Reports whether an address is one of the node itself. Any other owner without a Pod's name has nothing in use. */
function isReserved(claim: ClaimMark | undefined): claim is ClaimMark {
  return claim?.namespace === '' && NODE_OWNERS.includes(claim.name);
}

/**
 * The JSON patch of the answers: each tests the state that it answers, and all test the version that was decided on. An
 * entry that was taken out and made again meanwhile would look the same.
 */
export function releasePatchOf(answers: readonly ReleaseAnswer[], resourceVersion: string): readonly object[] {
  return [
    { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
    ...answers.flatMap(({ ip, from, to }) => {
      const path = `/status/ipam/release-ips/${ip}`;
      const change = to === undefined ? { op: 'remove', path } : { op: 'replace', path, value: to };
      return [{ op: 'test', path, value: from }, change];
    }),
  ];
}
