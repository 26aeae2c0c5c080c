import type { CiliumAllocation, CiliumNodeIpam, ReleaseState } from '../../crd/cilium-node.ts';
import { RELEASE_STATE } from '../../crd/cilium-node.ts';
import { familyOf } from '../../dataplane/ip-prefix.ts';
import {
  ANY_UID,
  type ClaimMark,
  ON_LINK_ENI_ID,
  type Supply,
  type SupplyAddress,
  type SupplyEni,
} from '../journal/supply.ts';

/** What the supply of a CiliumNode is made of. */
type CiliumSupplyInput = {
  readonly nodeName: string;
  readonly ipam: Pick<CiliumNodeIpam, 'pool' | 'releases'>;
  /** ENIs of the node that are known, by whatever source. */
  readonly enis: readonly SupplyEni[];
  /** Owners that each get an address which no Pod gets: `router`, `health`; empty without reservation. */
  readonly reservedOwners: readonly string[];
  readonly previous: Supply | undefined;
  /** Reports whether no Pod has the address and it does not cool. */
  readonly isFree: (ip: string) => boolean;
};

/** Owners of addresses of the node itself, as Cilium names them. */
export const NODE_OWNERS: readonly string[] = ['router', 'health'];

/** A supply, and the addresses of the pool that no Pod can have, with the reason. */
type CiliumSupply = { readonly supply: Supply; readonly refused: ReadonlyMap<string, string> };

/**
 * Makes the pool of a CiliumNode the supply of the node. An address whose `resource` is an ENI is on that ENI, and refused
 * while the ENI is not known; every other one is of the primary interface. One with an owner is static for that owner; one that is marked for release is
 * out of use, and as the supply is recorded it stays so after a restart.
 */
export function ciliumSupplyOf(input: CiliumSupplyInput): CiliumSupply {
  const { ipam, enis, previous } = input;
  const known = new Map(enis.map((eni) => [eni.eniId, eni]));
  const refused = new Map<string, string>();
  const byEni = new Map<string, SupplyAddress[]>();
  const reserved = reserve(input);
  for (const [ip, entry] of ipam.pool) {
    const { resource = '' } = entry;
    if (!known.has(resource) && ENI_ID.test(resource)) {
      refused.set(ip, `an address of ${resource}, which is no ENI in the NodeENIConfig of this node`);
      continue;
    }
    const eniId = known.has(resource) ? resource : ON_LINK_ENI_ID;
    const family = familyOf(ip);
    if (eniId === ON_LINK_ENI_ID && family === 6) {
      refused.set(ip, 'an IPv6 address of no known ENI, which is not served');
      continue;
    }
    const owner = reserved.get(ip) ?? entry.owner;
    const isReleased = !reserved.has(ip) && isUnderRelease(ipam.releases.get(ip));
    const address: SupplyAddress = {
      ...{ ip, family, assignmentId: '' },
      state: isReleased ? 'releasing' : 'assigned',
      ...(owner === undefined ? {} : { claim: claimOf(owner) }),
    };
    byEni.set(eniId, [...(byEni.get(eniId) ?? []), address]);
  }
  const listed = enis
    .filter(({ eniId }) => byEni.has(eniId))
    .map((eni) => withAddresses(eni, byEni.get(eni.eniId) ?? []));
  const onLink = byEni.get(ON_LINK_ENI_ID);
  const count = ipam.pool.size - refused.size;
  const supply: Supply = {
    nodeName: input.nodeName,
    // A CiliumNode has no epoch; the node may have had another source before.
    epoch: previous?.epoch ?? 0,
    enis: [...listed, ...(onLink === undefined ? [] : [onLinkEni(onLink)])],
    warm: { min: 0, max: 0, limit: Math.max(0, count - input.reservedOwners.length) },
  };
  return { supply, refused };
}

/** An id of an ENI: its address is of no other interface, whether the ENI is known or not. */
const ENI_ID = /^eni-/;

/** The ENI in the families of its addresses alone: a Pod gets an address of each family of its ENI, and the pool may have one. */
function withAddresses(eni: SupplyEni, addresses: readonly SupplyAddress[]): SupplyEni {
  const families = new Set(addresses.map(({ family }) => family));
  return { ...eni, addresses, primary: eni.primary.filter(({ family }) => families.has(family)) };
}

/** Reports whether an address in this state of a release is given to no Pod. */
function isUnderRelease(state: ReleaseState | undefined): boolean {
  return state !== undefined && state !== RELEASE_STATE.refused;
}

function onLinkEni(addresses: readonly SupplyAddress[]): SupplyEni {
  return { eniId: ON_LINK_ENI_ID, mac: '', primary: [], attached: true, draining: false, addresses };
}

/** An owner without a slash is no Pod: `router`, `health`, `ingress`. */
function claimOf(owner: string): ClaimMark {
  const slash = owner.indexOf('/');
  if (slash < 0) return { namespace: '', name: owner };
  return { namespace: owner.slice(0, slash), name: owner.slice(slash + 1), uid: ANY_UID };
}

/** Selects the address of each reserved owner: the pinned one, else the one that it had, else the first free one. */
function reserve({ ipam, reservedOwners, previous, isFree }: CiliumSupplyInput): ReadonlyMap<string, string> {
  const had = new Map(
    (previous?.enis ?? []).flatMap(({ addresses }) =>
      addresses.flatMap(({ ip, claim }) => (claim?.namespace === '' ? [[claim.name, ip] as const] : [])),
    ),
  );
  const chosen = new Map<string, string>();
  const isOpen = (ip: string, entry: CiliumAllocation): boolean =>
    entry.owner === undefined && familyOf(ip) === 4 && !chosen.has(ip) && !isUnderRelease(ipam.releases.get(ip));
  for (const owner of reservedOwners) {
    const before = had.get(owner);
    const entries = [...ipam.pool];
    const found =
      entries.find(([, entry]) => entry.owner === owner) ??
      entries.find(([ip, entry]) => ip === before && entry.owner === undefined && !chosen.has(ip)) ??
      entries.find(([ip, entry]) => isOpen(ip, entry) && isFree(ip) && ![...had.values()].includes(ip));
    if (found !== undefined) chosen.set(found[0], owner);
  }
  return chosen;
}
