import type { EniNetwork } from '../dataplane/network.ts';
import { CNI_CODE } from './api/cni-code.ts';
import type { AttachCommand } from './attach-command.ts';
import { CniFailureError } from './cni-failure.ts';
import { type Family, type LeaseKey, leaseKey } from './journal/lease.ts';
import type { Exhausted, PoolAddress } from './pool/pool-state.ts';
import type { UseCaseDeps } from './ports.ts';

/** What an allocation gives: addresses that are leased to the key, and the ENI that they are on. */
export type Allocation = { readonly addresses: readonly PoolAddress[]; readonly eni: EniNetwork };

/** Left of the caller's deadline for wiring and the answer. */
const ANSWER_MARGIN_MS = 1_000;
/** A cooldown may end without anybody saying so; the wait looks at least this often. */
const LOOK_EVERY_MS = 1_000;

/**
 * Takes an address per family from the pool, waiting for supply or cooldown when there is none, until the caller's
 * deadline or `addWaitMs`. Under pressure, after a short wait for supply, the address that has cooled longest is taken
 * early, once its connection tracking entries are gone: late answers to its last owner then find no connection.
 * @throws CniFailureError 101 with numbers, 102, 103 when ENIs are the problem, 11 when the caller gave up.
 */
export async function allocate(deps: UseCaseDeps, command: AttachCommand, signal: AbortSignal): Promise<Allocation> {
  const key = leaseKey(command.containerId, command.ifName);
  try {
    return await allocateInTime(deps, key, command, signal);
  } finally {
    // One that gave up wants no more.
    if (deps.state.addsWaiting.delete(key)) deps.demandChanged();
  }
}

async function allocateInTime(
  deps: UseCaseDeps,
  key: LeaseKey,
  command: AttachCommand,
  signal: AbortSignal,
): Promise<Allocation> {
  const { clock, state, settings } = deps;
  const startMs = clock.bootMs();
  const callerWaitMs =
    command.deadlineAtMs > 0 ? command.deadlineAtMs - ANSWER_MARGIN_MS - clock.nowMs() : Number.POSITIVE_INFINITY;
  const untilMs = startMs + Math.min(settings.addWaitMs, callerWaitMs);
  const forceAtMs = startMs + Math.min(settings.forceAfterMs, (untilMs - startMs) / 2);
  for (;;) {
    refuseIfAborted(signal);
    const nowMs = clock.bootMs();
    const families = familiesFor(deps, command);
    const taken =
      families.length === 0 ? undefined : take(deps, { key, families, nowMs, mayForce: nowMs >= forceAtMs });
    if (taken?.kind === 'leased') {
      await flushForced(deps, key, taken.forced);
      const eni = state.enis.get(taken.addresses[0]?.eniId ?? '');
      if (eni !== undefined && !signal.aborted) return { addresses: taken.addresses, eni };
      giveBack(deps, key);
      continue;
    }
    if (nowMs >= untilMs) throw exhausted(deps, taken, nowMs - startMs);
    const { podNamespace, podName } = command;
    state.addsWaiting.set(key, { podNamespace, podName });
    deps.demandChanged();
    const nextMs = nowMs < forceAtMs ? Math.min(forceAtMs, untilMs) : untilMs;
    await state.changed.wait(Math.max(1, Math.min(nextMs - nowMs, LOOK_EVERY_MS)), signal);
  }
}

function take(
  deps: UseCaseDeps,
  {
    mayForce,
    ...request
  }: {
    readonly key: LeaseKey;
    readonly families: readonly Family[];
    readonly nowMs: number;
    readonly mayForce: boolean;
  },
) {
  const { pool, readyEnis } = deps.state;
  const result = pool.lease({ ...request, enis: readyEnis });
  return result.kind === 'exhausted' && mayForce ? pool.forceCool({ ...request, enis: readyEnis }) : result;
}

async function flushForced(deps: UseCaseDeps, key: LeaseKey, forced: readonly string[]): Promise<void> {
  if (forced.length === 0) return;
  deps.metrics.forcedReuse();
  deps.log.warn('pool is empty, reusing an address before its cooldown ended', { key, ips: forced });
  try {
    await deps.conntrack.flush(forced);
  } catch (error) {
    // Its last owner's connections may live on: it rests again, in full.
    deps.state.pool.release({ key, nowMs: deps.clock.bootMs(), cooldownMs: deps.settings.ipCooldownMs });
    throw error;
  }
}

/** Returns addresses that were taken and not used. */
function giveBack(deps: UseCaseDeps, key: LeaseKey): void {
  deps.state.pool.release({ key, nowMs: deps.clock.bootMs(), cooldownMs: 0 });
  deps.state.changed.notify();
}

function familiesFor(deps: UseCaseDeps, command: AttachCommand): readonly Family[] {
  const families = deps.state.familiesToGive();
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
  if (state.readyEnis.size === 0) {
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
  const want = (result?.want ?? []).map((family) => `IPv${family}`).join('+') || 'an address';
  return new CniFailureError(
    CNI_CODE.poolExhausted,
    `no address left: want ${want}, free ${result?.free ?? 0}, cooling ${result?.cooling ?? 0}, in use ${counts.leased} (${waited})`,
    [details, ...more, state.supplyWaitsFor() ?? ''].filter((line) => line !== '').join('\n'),
  );
}

function refuseIfAborted(signal: AbortSignal): void {
  if (signal.aborted) {
    throw new CniFailureError(
      CNI_CODE.tryAgainLater,
      'gave up while waiting for an address',
      String(signal.reason ?? ''),
    );
  }
}
