import { ADDRESS_STATE, type PoolReplyInit } from '../api/ops-messages.ts';
import { claimKey, type SupplyEni, type WarmTargets } from '../journal/supply.ts';
import { demandInUnits, isFree, type OutsideDemand } from '../pool/demand.ts';
import type { PoolAddress } from '../pool/pool-state.ts';
import { isRegistered } from '../pool/registered.ts';
import { type DecidedPool, whyStays } from '../pool/why-stays.ts';
import type { NodeState } from '../state/node-state.ts';

/** Inputs of the reply besides the agent's state. */
type PoolView = {
  /** Now, by the clock of the cooldowns: milliseconds since boot. */
  readonly bootMs: number;
  readonly cooldownMs: number;
  readonly warm: WarmTargets;
  readonly outside: OutsideDemand;
  /** Absent: the supply has no object to write offers to. */
  readonly release?: DecidedPool['release'];
  /** Returns the demand that the API server has; absent without a cluster. */
  readonly asked?: () => number | undefined;
  /** Handlers of the runtime by container id; absent unless they were asked for. */
  readonly handlers?: ReadonlyMap<string, string>;
};

/** Describes every address with its owner, and every ENI with its state. Changes nothing. */
export function poolReply(state: NodeState, view: PoolView): PoolReplyInit {
  const addresses = [...state.pool.state.addresses.values()];
  // Free ones are all others of the block: they would fill the page.
  const onBridge = [...state.bridgePool.state.addresses.values()].filter(
    (address) => address.state !== 'free' || isRegistered(state.bridgePool.state, address),
  );
  const byEni = Map.groupBy(addresses, ({ eniId }) => eniId);
  const { warm, outside, release } = view;
  const supplyProblem = state.distrusted ?? state.supplyWaitsFor() ?? '';
  const units = demandInUnits(state.pool.state, warm, outside);
  const decided = { units, warm, outside, supplyProblem, release };
  return {
    addresses: [...addresses, ...onBridge].map((address) => addressMessage(state, address, view)),
    enis: (state.supply?.enis ?? []).map((eni) => ({
      ...eniMessage(state, eni, byEni.get(eni.eniId) ?? []),
      stays: whyStays(state.pool.state, eni.eniId, decided),
    })),
    ...{ warmMin: warm.min, warmMax: warm.max, limit: warm.limit ?? 0 },
    demand: units.desired,
    asked: askedOf(view),
    waiting: [...state.addsWaiting].map(([key, { podNamespace, podName }]) => ({
      ...splitKey(key),
      podNamespace,
      podName,
    })),
    supplyEpoch: Math.max(0, state.supply?.epoch ?? 0),
    supplyProblem,
    families: state.podFamilies(),
    hasSupply: state.supply !== undefined,
    cooldownMs: view.cooldownMs,
  };
}

function askedOf({ asked }: PoolView): PoolReplyInit['asked'] {
  if (asked === undefined) return undefined;
  const addresses = asked();
  return addresses === undefined ? { known: false } : { known: true, addresses };
}

type Item<T extends readonly unknown[] | undefined> = NonNullable<T>[number];

function addressMessage(
  state: NodeState,
  address: PoolAddress,
  { bootMs, handlers }: PoolView,
): Item<PoolReplyInit['addresses']> {
  const { ip, family, eniId, assignmentId, leaseKey, coolUntilMs } = address;
  const lease = leaseKey === undefined ? undefined : state.leases.get(leaseKey);
  return {
    ...{ ip, family, eniId, assignmentId },
    state: stateNumber(state, address),
    // An ADD in progress has its address before it has a lease.
    ...(leaseKey === undefined ? {} : splitKey(leaseKey)),
    podNamespace: lease?.podNamespace ?? '',
    podName: lease?.podName ?? '',
    coolRemainingMs: address.state === 'cooling' ? Math.max(0, (coolUntilMs ?? bootMs) - bootMs) : 0,
    unlisted: address.supplyState === 'missing',
    pairedIp: address.pairedIp ?? '',
    keptFor: address.claim === undefined ? '' : claimKey(address.claim),
    keptUid: address.claim?.uid ?? '',
    runtimeHandler: (lease && handlers?.get(lease.containerId)) ?? '',
  };
}

function stateNumber(state: NodeState, address: PoolAddress): number {
  const { readyEnis, pool, heldIps } = state;
  if (address.state === 'withdrawn' && heldIps.has(address.ip)) return ADDRESS_STATE.ADDRESS_STATE_UNREADY;
  switch (address.state) {
    case 'leased':
      return ADDRESS_STATE.ADDRESS_STATE_IN_USE;
    case 'cooling':
      return ADDRESS_STATE.ADDRESS_STATE_COOLING;
    case 'withdrawn':
      return address.offered ? ADDRESS_STATE.ADDRESS_STATE_OFFERED : ADDRESS_STATE.ADDRESS_STATE_RELEASING;
    case 'kept':
      return ADDRESS_STATE.ADDRESS_STATE_KEPT;
    case 'free': {
      if (isRegistered(pool.state, address)) return ADDRESS_STATE.ADDRESS_STATE_REGISTERED;
      const mayServe = readyEnis.has(address.eniId) && pool.state.enis.get(address.eniId)?.serves === true;
      return mayServe ? ADDRESS_STATE.ADDRESS_STATE_FREE : ADDRESS_STATE.ADDRESS_STATE_UNREADY;
    }
  }
}

function eniMessage(state: NodeState, eni: SupplyEni, addresses: readonly PoolAddress[]): Item<PoolReplyInit['enis']> {
  const { eniId, mac, draining, attached } = eni;
  const link = state.enis.get(eniId);
  const record = state.eniRecords.get(eniId);
  const isReady = state.readyEnis.has(eniId) && attached && !draining;
  return {
    ...{ eniId, mac, draining, attached },
    ...{ ifname: link?.ifname ?? '', ifindex: link?.ifindex ?? 0, table: record?.table ?? 0, slot: record?.slot ?? 0 },
    ready: isReady,
    problem: state.eniProblems.get(eniId)?.text ?? '',
    addresses: addresses.length,
    inUse: addresses.filter((address) => address.state === 'leased').length,
    free: addresses.filter((address) => isFree(state.pool.state, address)).length,
    primaryIps: eni.primary.map(({ ip }) => ip),
    subnetCidrs: eni.primary.map(({ subnetCidr }) => subnetCidr),
    deviceIndex: eni.deviceIndex ?? 0,
  };
}

function splitKey(key: string): { readonly containerId: string; readonly ifName: string } {
  const slash = key.indexOf('/');
  return { containerId: key.slice(0, slash), ifName: key.slice(slash + 1) };
}
