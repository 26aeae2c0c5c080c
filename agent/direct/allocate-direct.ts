import { CNI_CODE } from '../api/cni-code.ts';
import type { TimedAttachCommand } from '../attach-command.ts';
import { CniFailureError } from '../cni-failure.ts';
import type { HostLink } from '../eni/locate-enis.ts';
import { type LeaseKey, leaseKey } from '../journal/lease.ts';
import type { UseCaseDeps } from '../ports.ts';
import { describeRegistered } from '../registered-addresses.ts';
import type { ChosenNetwork } from './choose-network.ts';
import type { DirectEni, DirectLeaseResult } from './direct-pool.ts';

/** The result of an allocation: an ENI that is leased to the key, and its interface in the host's namespace. */
type DirectAllocation = { readonly eni: DirectEni; readonly link: HostLink };

/** Part of the caller's deadline that is left for wiring and the reply. */
const ANSWER_MARGIN_MS = 1_000;
/** A cooldown may end without a notification; poll at least this often. */
const POLL_MS = 1_000;

/**
 * Takes a whole ENI of the pool, or the one with a claim of the Pod, and waits for it until the caller's deadline or
 * `addWaitMs`. Under pressure a cooling one is taken early, and its connection tracking entries are flushed.
 * @throws CniFailureError 101 with the reason, 102 when interfaces are missing, 103 when another program
 * keeps undoing what every Pod needs, 11 when the caller gave up.
 */
export async function allocateDirect(
  deps: UseCaseDeps,
  { command, needsClaim }: ChosenNetwork,
  signal: AbortSignal,
): Promise<DirectAllocation> {
  const key = leaseKey(command.containerId, command.ifName);
  try {
    return await allocateInTime(deps, key, { command, needsClaim }, signal);
  } finally {
    if (deps.state.directAddsWaiting.delete(key)) deps.demandChanged();
  }
}

async function allocateInTime(
  deps: UseCaseDeps,
  key: LeaseKey,
  { command, needsClaim }: ChosenNetwork,
  signal: AbortSignal,
): Promise<DirectAllocation> {
  const { clock, state, settings } = deps;
  const startMs = clock.bootMs();
  const untilMs = Math.min(startMs + settings.addWaitMs, command.deadlineAtBootMs - ANSWER_MARGIN_MS);
  const forceAtMs = startMs + Math.min(settings.forceAfterMs, (untilMs - startMs) / 2);
  for (;;) {
    if (signal.aborted) throw gaveUp(signal);
    const nowMs = clock.bootMs();
    if (state.undone !== undefined) {
      if (nowMs >= untilMs) throw notSetUp(state.undone, nowMs - startMs);
      await state.changed.wait(Math.max(1, Math.min(untilMs - nowMs, POLL_MS)), signal);
      continue;
    }
    const result = take(deps, key, command, { needsClaim, mayForce: nowMs >= forceAtMs });
    if (result.kind === 'leased') {
      const link = state.directNics.get(result.eni.eniId);
      // An ENI with a claim had no cooldown either: its next Pod may come at once.
      if (result.isForced || result.eni.claim !== undefined) await flush(deps, key, result);
      if (link !== undefined && !signal.aborted) return { eni: result.eni, link };
      state.direct.release({ key, nowMs: clock.bootMs(), cooldownMs: 0 });
      continue;
    }
    if (nowMs >= untilMs) throw exhausted(deps, result, nowMs - startMs);
    if (!result.awaitsClaim)
      state.directAddsWaiting.set(key, { podNamespace: command.podNamespace, podName: command.podName });
    deps.demandChanged();
    const nextMs = nowMs < forceAtMs ? Math.min(forceAtMs, untilMs) : untilMs;
    await state.changed.wait(Math.max(1, Math.min(nextMs - nowMs, POLL_MS)), signal);
  }
}

function take(
  { state, clock }: UseCaseDeps,
  key: LeaseKey,
  { podNamespace, podName, podUid }: TimedAttachCommand,
  { needsClaim, mayForce }: { readonly needsClaim: boolean; readonly mayForce: boolean },
): DirectLeaseResult {
  return state.direct.lease({
    ...{ key, podNamespace, podName, podUid, mayForce },
    needsClaim,
    present: new Set(state.directNics.keys()),
    nowMs: clock.bootMs(),
  });
}

async function flush(
  deps: UseCaseDeps,
  key: LeaseKey,
  { eni: { primary, eniId }, isForced }: DirectLeaseResult & { readonly kind: 'leased' },
): Promise<void> {
  const ips = primary.map(({ ip }) => ip);
  if (isForced) {
    deps.metrics.forcedReuse();
    deps.log.warn('no ENI is left, reusing one before its cooldown ended', { key, eniId });
  }
  try {
    await deps.conntrack.flush(ips);
  } catch (error) {
    deps.state.direct.release({ key, nowMs: deps.clock.bootMs(), cooldownMs: deps.settings.ipCooldownMs });
    throw error;
  }
}

function exhausted(
  { state, settings }: UseCaseDeps,
  result: DirectLeaseResult & { readonly kind: 'exhausted' },
  waitedMs: number,
): CniFailureError {
  const waited = `waited ${Math.round(waitedMs / 1000)} s`;
  const supplyWaits = state.supplyWaitsFor() ?? '';
  if (result.missingNics > 0) {
    return new CniFailureError(
      CNI_CODE.eniGone,
      `${result.missingNics} exclusive ENIs are attached, and their interfaces are not on this node (${waited})`,
      supplyWaits,
    );
  }
  if (result.awaitsClaim) {
    return new CniFailureError(
      CNI_CODE.poolExhausted,
      `the exclusive ENI that is kept or prepared for this Pod is not here yet (${waited})`,
      supplyWaits,
    );
  }
  const all = [...state.direct.state.values()];
  const isWaiting = ({ use, registered, claim }: DirectEni) =>
    use !== 'leased' && registered === true && claim === undefined;
  const registered = all.filter(isWaiting).length;
  const count = (use: DirectEni['use']): number => all.filter((eni) => eni.use === use && !isWaiting(eni)).length;
  const inBalancers = registered === 0 ? '' : `, in load balancers ${registered}`;
  const waiting = registered === 0 ? [] : [describeRegistered(registered, settings.registeredWaitMs)];
  return new CniFailureError(
    CNI_CODE.poolExhausted,
    `no exclusive ENI left: free ${count('free')}, cooling ${count('cooling')}, in use ${count('leased')} of ${Math.max(state.supply?.direct?.warm.limit ?? 0, all.length)}${inBalancers} (${waited})`,
    [...waiting, supplyWaits].filter((line) => line !== '').join('\n'),
  );
}

function notSetUp(undone: string, waitedMs: number): CniFailureError {
  const waited = `waited ${Math.round(waitedMs / 1000)} s`;
  return new CniFailureError(
    CNI_CODE.conflict,
    `what every Pod of this node needs does not stay set up (${waited})`,
    undone,
  );
}

function gaveUp(signal: AbortSignal): CniFailureError {
  return new CniFailureError(
    CNI_CODE.tryAgainLater,
    'gave up while waiting for an exclusive ENI',
    String(signal.reason ?? ''),
  );
}
