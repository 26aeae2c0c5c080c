import type { Supply, SupplyAddress, SupplyEni } from '../journal/supply.ts';
import { asSupplied, isResting } from './pool.ts';
import type { PoolAddress, PoolEni, PoolState, Step, SupplyEntry, SupplyResult } from './pool-state.ts';

/**
 * Puts a new supply in force. Idempotent. Leased and cooling addresses stay until their lease or cooldown ends, listed
 * or not. A leased one stays on its ENI even when the supply has moved it. A supply with a lower epoch than the one in
 * force is outdated (a restored etcd, a stale cache) and changes nothing; nor does one below `minEpoch`, the highest
 * epoch that an agent of this node has acted on, as far as the source of the supply knows.
 */
export function applySupply(state: PoolState, supply: Supply, minEpoch = -1): Step<SupplyResult> {
  const inForce = Math.max(state.epoch, minEpoch);
  if (supply.epoch < inForce) return { state, result: { kind: 'distrusted', epoch: supply.epoch, inForce } };
  const addresses = new Map<string, PoolAddress>();
  const added: string[] = [];
  for (const eni of supply.enis) {
    for (const offer of eni.addresses) {
      // The decoder refuses one address on two ENIs; should a source let it pass, the first ENI has it.
      if (addresses.has(offer.ip)) continue;
      const known = state.addresses.get(offer.ip);
      if (known === undefined) added.push(offer.ip);
      addresses.set(offer.ip, known === undefined ? fresh(offer, eni) : withEntry(known, entryOf(offer, eni)));
    }
  }
  const missing: string[] = [];
  const dropped: string[] = [];
  for (const known of state.addresses.values()) {
    if (addresses.has(known.ip)) continue;
    const isCooling = known.coolUntilMs !== undefined;
    if (isCooling) addresses.set(known.ip, { ...withoutEntry(known), state: 'cooling', offered: false });
    else if (known.state === 'leased') addresses.set(known.ip, withoutEntry(known));
    (isCooling || known.state === 'leased' ? missing : dropped).push(known.ip);
  }
  const enis = new Map(supply.enis.map((eni): [string, PoolEni] => [eni.eniId, poolEni(eni)]));
  return {
    state: { ...state, addresses, enis, epoch: supply.epoch },
    result: { kind: 'applied', added, dropped, missing },
  };
}

function poolEni(eni: SupplyEni): PoolEni {
  return { eniId: eni.eniId, serves: eni.attached && !eni.draining, draining: eni.draining };
}

function entryOf(offer: SupplyAddress, eni: SupplyEni): SupplyEntry {
  return {
    eniId: eni.eniId,
    assignmentId: offer.assignmentId,
    supplyState: offer.state,
    ...(offer.pairedIp === undefined ? {} : { pairedIp: offer.pairedIp }),
    ...(offer.claim === undefined ? {} : { claim: offer.claim }),
  };
}

function fresh(offer: SupplyAddress, eni: SupplyEni): PoolAddress {
  const { ip, family } = offer;
  return asListed({ ip, family, ...entryOf(offer, eni), state: 'free', offered: false });
}

function withEntry(known: PoolAddress, entry: SupplyEntry): PoolAddress {
  const { next: _next, pairedIp: _pairedIp, claim: _claim, ...rest } = known;
  // Another assignment id means that ipamd took the offered address and assigned it again: it counts as new.
  const offered = known.offered && known.assignmentId === entry.assignmentId;
  switch (known.state) {
    case 'leased':
      // The Pod's routes lead to the ENI of its lease; the new entry applies once the lease ends.
      return known.eniId === entry.eniId ? { ...rest, ...entry } : { ...withoutEntry(known), next: entry };
    case 'cooling': {
      const listed = { ...rest, ...entry, offered };
      return isResting(listed) ? listed : asListed(listed);
    }
    case 'free':
    case 'kept':
    case 'withdrawn':
      return asListed({ ...rest, ...entry, offered });
  }
}

/** As `asSupplied`, for an address that the supply lists. */
function asListed(listed: PoolAddress): PoolAddress {
  return asSupplied(listed) ?? listed;
}

function withoutEntry(known: PoolAddress): PoolAddress {
  const { next: _next, ...rest } = known;
  return { ...rest, supplyState: 'missing' };
}
