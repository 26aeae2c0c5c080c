import type { Family } from '../../dataplane/ip-prefix.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import { type LeaseKey, leaseKey } from '../journal/lease.ts';
import { ON_LINK_ENI_ID } from '../journal/supply.ts';
import type { Exhausted, LeaseResult, PoolAddress } from '../pool/pool-state.ts';
import { describeRegistered } from '../pool/registered-addresses.ts';
import type { UseCaseDeps } from '../state/ports.ts';
import type { TimedAttachCommand } from './attach-command.ts';
import { flushBeforeReuse } from './flush-before-reuse.ts';
import { type AddressSource, addWaitOf, type LeaseSource, leaseInTime } from './lease-in-time.ts';
import { needsStaticIp, staticAddressSource } from './static-address-source.ts';

/** The result of an allocation: addresses that are leased to the key, and the ENI, or primary interface, that they are on. */
export type Allocation = {
  readonly addresses: readonly PoolAddress[];
  readonly eni: { readonly eniId: string; readonly mtu: number };
};

/**
 * Takes an address per family, waiting when there is none, until the caller's deadline or `addWaitMs`. A Pod with a
 * static IP gets that address and no other; every other Pod gets addresses of the pool.
 * @throws CniFailureError 101 with numbers or the reason, 102, 103 when ENIs are the problem, 11 when the caller gave
 * up or it cannot be determined whether the Pod has a static IP, 105 when connections of a static IP's last owner are
 * left.
 */
export async function allocate(
  deps: UseCaseDeps,
  command: TimedAttachCommand,
  signal: AbortSignal,
): Promise<Allocation> {
  const key = leaseKey(command);
  const wait = addWaitOf(deps, command);
  const pod = { namespace: command.podNamespace, name: command.podName, uid: command.podUid };
  try {
    const source = (await needsStaticIp(deps, pod, wait.untilMs, signal))
      ? staticAddressSource(deps, key, pod, command.plugin)
      : poolAddressSource(deps, key, command);
    return await leaseInTime(deps, wait, leaseSourceOf(deps, command, source, signal), signal);
  } finally {
    // An ADD that gave up is no demand any more.
    if (deps.state.addsWaiting.delete(key)) deps.demandChanged();
  }
}

function leaseSourceOf(
  deps: UseCaseDeps,
  command: TimedAttachCommand,
  source: AddressSource,
  signal: AbortSignal,
): LeaseSource<Allocation> {
  const key = leaseKey(command);
  const { state } = deps;
  return {
    what: 'an address',
    lease: (nowMs, mayForce) => {
      const families = familiesFor(deps, command);
      const addresses =
        families.length === 0 ? undefined : takeUnwired(deps, key, () => source.take(families, nowMs, mayForce));
      if (addresses === undefined) return undefined;
      return async () => {
        await source.prepare();
        const eni = linkOf(deps, addresses[0]?.eniId ?? '');
        if (eni !== undefined && !signal.aborted) return { addresses, eni };
        returnAddresses(deps, key);
        return undefined;
      };
    },
    waiting: () => {
      state.addsWaiting.set(key, source.waiting);
      deps.demandChanged();
    },
    failure: source.failure,
  };
}

/**
 * Takes addresses that no other program has on this node: the kernel is asked about each. One that it has is held back,
 * so that each round holds one more, or there is none left.
 */
function takeUnwired(
  { state, strangers, log, clock }: UseCaseDeps,
  key: LeaseKey,
  take: () => readonly PoolAddress[] | undefined,
): readonly PoolAddress[] | undefined {
  for (;;) {
    const addresses = take();
    const wired = (addresses ?? []).map(({ ip }) => ip).filter(strangers.isWired);
    if (wired.length === 0) return addresses;
    log.warn('addresses that another program has on this node are given to no Pod', { ips: wired });
    state.pool.setStrangers(new Set([...(state.pool.state.strangers ?? []), ...wired]));
    state.letGo(wired);
    state.pool.release({ key, nowMs: clock.bootMs(), cooldownMs: 0 });
  }
}

/** Finds what the addresses are on: an ENI that is set up, or the primary interface. */
function linkOf({ state }: UseCaseDeps, eniId: string): Allocation['eni'] | undefined {
  if (eniId !== ON_LINK_ENI_ID) return state.enis.get(eniId);
  return state.onLinkMtu === undefined ? undefined : { eniId, mtu: state.onLinkMtu };
}

/**
 * Takes addresses of the pool. Under pressure, after a short wait for supply, it takes the address that has cooled
 * longest before its time, once its connection tracking entries are deleted: late replies to its last owner then find
 * no connection.
 */
function poolAddressSource(
  deps: UseCaseDeps,
  key: LeaseKey,
  { podNamespace, podName, plugin }: TimedAttachCommand,
): AddressSource {
  const { pool } = deps.state;
  let lastResult: LeaseResult | undefined;
  return {
    waiting: { podNamespace, podName },
    take: (families, nowMs, mayForce) => {
      const request = { key, families, nowMs, enis: deps.state.servingEnis(plugin) };
      lastResult = pool.lease(request);
      if (lastResult.kind === 'exhausted' && mayForce) lastResult = pool.forceCool(request);
      return lastResult.kind === 'leased' ? lastResult.addresses : undefined;
    },
    prepare: async () => {
      if (lastResult?.kind !== 'leased') return;
      const { forced: ips, isUnderPressure } = lastResult;
      const cooldownMs = deps.settings.ipCooldownMs;
      await flushBeforeReuse(deps, {
        ...{ ips, isUnderPressure, warning: 'pool is empty, reusing an address', about: { key, ips } },
        coolAgain: () => pool.release({ key, nowMs: deps.clock.bootMs(), cooldownMs }),
      });
    },
    failure: (waitedMs) => exhausted(deps, lastResult?.kind === 'exhausted' ? lastResult : undefined, waitedMs),
  };
}

/** Returns addresses to the pool that were taken and not used. */
function returnAddresses(deps: UseCaseDeps, key: LeaseKey): void {
  deps.state.pool.release({ key, nowMs: deps.clock.bootMs(), cooldownMs: 0 });
  deps.state.changed.notify();
}

function familiesFor(deps: UseCaseDeps, command: TimedAttachCommand): readonly Family[] {
  const families = deps.state.podFamilies();
  if (!command.disableIpv6 || families.length === 0) return families;
  if (families.includes(4)) return [4];
  throw new CniFailureError(
    CNI_CODE.invalidConf,
    'disableIPv6 is set, but the ENIs of this node have IPv6 addresses only',
    'take disableIPv6 out of the network configuration',
  );
}

function exhausted(deps: UseCaseDeps, result: Exhausted | undefined, waitedMs: number): CniFailureError {
  const { state } = deps;
  const problems = [...state.eniProblems.values()];
  const details = problems.map(({ eniId, text }) => `${eniId}: ${text}`).join('\n');
  const waited = `waited ${Math.round(waitedMs / 1000)} s`;
  if (state.servingEnis().size === 0) {
    if (problems.some(({ kind }) => kind === 'undone')) {
      return new CniFailureError(
        CNI_CODE.conflict,
        `no ENI can serve: what it needs does not stay set up (${waited})`,
        details,
      );
    }
    if (problems.some(({ kind }) => kind === 'conflict')) {
      return new CniFailureError(CNI_CODE.conflict, `no ENI can serve: its place is occupied (${waited})`, details);
    }
    if (problems.length > 0) {
      return new CniFailureError(CNI_CODE.eniGone, `no ENI of this node is there (${waited})`, details);
    }
    return new CniFailureError(
      CNI_CODE.poolExhausted,
      `this node has no ENI yet (${waited})`,
      state.supplyWaitsFor() ?? 'waiting for supply',
    );
  }
  const counts = state.pool.counts();
  const unserved = result?.unserved ?? 0;
  const more = unserved === 0 ? [] : [`${unserved} more on ENIs that do not serve yet, or drain`];
  const registered = result?.registered ?? 0;
  const waiting = registered === 0 ? [] : [describeRegistered(registered, deps.settings.registeredWaitMs)];
  const strangers = result?.strangers ?? 0;
  const taken = strangers === 0 ? [] : [`${strangers} in use on this node by other programs: ip route get ADDRESS`];
  const inBalancers = registered === 0 ? '' : `, in load balancers ${registered}`;
  const want = (result?.want ?? []).map((family) => `IPv${family}`).join('+') || 'an address';
  return new CniFailureError(
    CNI_CODE.poolExhausted,
    `no address left: want ${want}, free ${result?.free ?? 0}, cooling ${result?.cooling ?? 0}, in use ${counts.leased}${inBalancers} (${waited})`,
    [details, ...more, ...waiting, ...taken, state.supplyWaitsFor() ?? ''].filter((line) => line !== '').join('\n'),
  );
}
