import type { Family } from '../../dataplane/ip-prefix.ts';
import type { LeaseKey } from '../journal/lease.ts';
import { ANY_UID, claimKey } from '../journal/supply.ts';
import { asLeased, withAddresses } from './pool.ts';
import type { PoolAddress, PoolState, Step } from './pool-state.ts';

/** A Pod, as the runtime names it. */
export type PodIdentity = { readonly namespace: string; readonly name: string; readonly uid: string };

/** A Pod's request for its static address. */
export type StaticLeaseRequest = {
  readonly key: LeaseKey;
  readonly pod: PodIdentity;
  /** Not empty. */
  readonly families: readonly Family[];
  /** The ENIs that may serve (those that are set up in the kernel); all when absent. */
  readonly enis?: ReadonlySet<string>;
};

/** The result of a request for a static address. */
export type StaticLeaseResult =
  | {
      readonly kind: 'leased';
      /** IPv4 first, all on one ENI. */
      readonly addresses: readonly PoolAddress[];
      /** False when the key had them already. True: flush their connection tracking entries before use. */
      readonly isNew: boolean;
    }
  | {
      readonly kind: 'waits';
      /** What it waits for, as text for people: 'the address kept for ns/web-0 is not on this node yet'. */
      readonly reason: string;
    };

/**
 * Leases a Pod its static address: one whose claim mark has its name and its uid, that serves and is not in use. Never
 * another one. A key that has a lease gets the same addresses again. A family without a static address is left out,
 * except the first of those requested.
 */
export function leaseStatic(state: PoolState, request: StaticLeaseRequest): Step<StaticLeaseResult> {
  const current = state.leases.get(request.key);
  if (current !== undefined) {
    const addresses = current.flatMap((ip) => state.addresses.get(ip) ?? []);
    return { state, result: { kind: 'leased', addresses, isNew: false } };
  }
  const named = findClaimed(state, request.pod);
  const [main] = [...request.families].sort();
  const first = named.find(({ address }) => address.family === main && isServing(state, request, address));
  if (first === undefined) return { state, result: { kind: 'waits', reason: describeWait(state, request, named) } };
  const chosen = [...request.families].sort().flatMap((family) => {
    const ofFamily = named.find(
      ({ address }) =>
        address.family === family && address.eniId === first.address.eniId && isServing(state, request, address),
    );
    return ofFamily === undefined ? [] : [asLeased(ofFamily.address, request.key)];
  });
  const leases = new Map(state.leases).set(
    request.key,
    chosen.map(({ ip }) => ip),
  );
  return {
    state: { ...state, addresses: withAddresses(state, chosen), leases },
    result: { kind: 'leased', addresses: chosen, isNew: true },
  };
}

type ClaimedAddress = { readonly address: PoolAddress; readonly uid: string | undefined };

/** Finds the addresses whose claim mark, as the supply has it now, names this Pod. */
function findClaimed(state: PoolState, pod: Pick<PodIdentity, 'namespace' | 'name'>): readonly ClaimedAddress[] {
  const found: ClaimedAddress[] = [];
  for (const address of state.addresses.values()) {
    const claim = address.next === undefined ? address.claim : address.next.claim;
    if (claim?.namespace !== pod.namespace || claim.name !== pod.name) continue;
    // An address that the supply dropped is on another node by now, or on none.
    if (address.supplyState === 'missing' && address.next === undefined) continue;
    found.push({ address, uid: claim.uid });
  }
  return found;
}

/** Finds the claim mark of a Pod's name in the supply in force. */
export function findClaimUids(
  state: PoolState,
  pod: Pick<PodIdentity, 'namespace' | 'name'>,
): { readonly uids: ReadonlySet<string> } | undefined {
  const named = findClaimed(state, pod);
  return named.length === 0 ? undefined : { uids: new Set(named.flatMap(({ uid }) => uid ?? [])) };
}

function isServing(state: PoolState, { pod, enis }: StaticLeaseRequest, address: PoolAddress): boolean {
  return (
    address.state === 'kept' &&
    address.supplyState === 'assigned' &&
    !address.offered &&
    state.strangers?.has(address.ip) !== true &&
    mayUse(address.claim?.uid, pod.uid) &&
    isOnReadyEni(state, enis, address)
  );
}

/** Reports whether the uid of a claim mark lets a Pod of its name use the address. */
export function mayUse(claimUid: string | undefined, podUid: string): boolean {
  return claimUid === ANY_UID || (claimUid !== undefined && claimUid === podUid);
}

function isOnReadyEni(state: PoolState, enis: ReadonlySet<string> | undefined, { eniId }: PoolAddress): boolean {
  return state.enis.get(eniId)?.serves === true && (enis === undefined || enis.has(eniId));
}

function describeWait(
  state: PoolState,
  { pod, families, enis }: StaticLeaseRequest,
  named: readonly ClaimedAddress[],
): string {
  const purpose = `kept for ${claimKey(pod)}`;
  if (pod.uid === '' && named.every(({ uid }) => uid !== ANY_UID))
    return `the runtime names no uid (K8S_POD_UID), and no other Pod may have an address ${purpose}`;
  const [main] = [...families].sort();
  const claimed = named.find(({ address }) => address.family === main);
  if (claimed === undefined) return `the address ${purpose} is not on this node yet`;
  const { address, uid } = claimed;
  const text = `address ${address.ip} ${purpose}`;
  if (address.leaseKey !== undefined) {
    return `${text} is held by the sandbox ${address.leaseKey.split('/')[0]} of its predecessor`;
  }
  if (state.strangers?.has(address.ip) === true) return `${text} is in use on this node by another program`;
  if (address.state === 'cooling') return `${text} rests after a Pod of another name`;
  if (address.supplyState === 'releasing') return `${text} is being taken off this node`;
  if (uid === undefined) return `${text} is on this node, but for no Pod yet`;
  if (!mayUse(uid, pod.uid)) return `${text} is for the Pod with uid ${uid}, not for this one with uid ${pod.uid}`;
  if (address.offered) return `${text} is offered back; the offer is being taken out`;
  if (!isOnReadyEni(state, enis, address)) return `${text} is on ${address.eniId}, which does not serve now`;
  return `${text} is not usable yet`;
}
