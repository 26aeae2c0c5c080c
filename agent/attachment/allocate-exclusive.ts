import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import type { ExclusiveEni, ExclusiveLeaseResult } from '../exclusive/exclusive-pool.ts';
import { type LeaseKey, leaseKey } from '../journal/lease.ts';
import type { HostLink } from '../node/host-link.ts';
import { describeRegistered } from '../pool/registered-addresses.ts';
import type { UseCaseDeps } from '../state/ports.ts';
import type { TimedAttachCommand } from './attach-command.ts';
import type { ChosenNetwork } from './choose-network.ts';
import { flushBeforeReuse } from './flush-before-reuse.ts';
import { addWaitOf, type LeaseSource, leaseInTime } from './lease-in-time.ts';

/** The result of an allocation: an ENI that is leased to the key, and its interface in the host's namespace. */
export type ExclusiveAllocation = { readonly eni: ExclusiveEni; readonly link: HostLink };

/**
 * Takes a whole ENI of the pool, or the one with a claim of the Pod, and waits for it until the caller's deadline or
 * `addWaitMs`. Under pressure a cooling one is taken early, and its connection tracking entries are flushed.
 * @throws CniFailureError 101 with the reason, 102 when interfaces are missing, 103 when another program
 * keeps undoing what every Pod needs, 11 when the caller gave up.
 */
export async function allocateExclusive(
  deps: UseCaseDeps,
  { command, needsClaim }: ChosenNetwork,
  signal: AbortSignal,
): Promise<ExclusiveAllocation> {
  const key = leaseKey(command);
  const wait = addWaitOf(deps, command);
  try {
    return await leaseInTime(deps, wait, leaseSourceOf(deps, key, { command, needsClaim }, signal), signal);
  } finally {
    if (deps.state.exclusiveAddsWaiting.delete(key)) deps.demandChanged();
  }
}

function leaseSourceOf(
  deps: UseCaseDeps,
  key: LeaseKey,
  { command, needsClaim }: ChosenNetwork,
  signal: AbortSignal,
): LeaseSource<ExclusiveAllocation> {
  const { state, clock, settings } = deps;
  /** Why the last try gave nothing. */
  let last: (ExclusiveLeaseResult & { readonly kind: 'exhausted' }) | undefined;
  return {
    what: 'an exclusive ENI',
    lease: (_nowMs, mayForce) => {
      last = undefined;
      if (state.undone !== undefined) return undefined;
      const result = take(deps, key, command, { needsClaim, mayForce });
      if (result.kind === 'exhausted') {
        last = result;
        return undefined;
      }
      return async () => {
        const { eni, isForced, isUnderPressure } = result;
        const link = state.exclusiveNics.get(eni.eniId);
        // An ENI with a claim had no cooldown either: its next Pod may come at once.
        if (isForced || eni.claim !== undefined)
          await flushBeforeReuse(deps, {
            ...{ ips: eni.primary.map(({ ip }) => ip), isUnderPressure },
            ...{ warning: 'no ENI is left, reusing one', about: { key, eniId: eni.eniId } },
            coolAgain: () =>
              state.exclusivePool.release({ key, nowMs: clock.bootMs(), cooldownMs: settings.ipCooldownMs }),
          });
        if (link !== undefined && !signal.aborted) return { eni, link };
        state.exclusivePool.release({ key, nowMs: clock.bootMs(), cooldownMs: 0 });
        return undefined;
      };
    },
    waiting: () => {
      if (last === undefined) return;
      if (!last.awaitsClaim)
        state.exclusiveAddsWaiting.set(key, { podNamespace: command.podNamespace, podName: command.podName });
      deps.demandChanged();
    },
    failure: (waitedMs) =>
      last === undefined ? notSetUp(state.undone ?? '', waitedMs) : exhausted(deps, last, waitedMs),
  };
}

function take(
  { state, clock }: UseCaseDeps,
  key: LeaseKey,
  { podNamespace, podName, podUid }: TimedAttachCommand,
  { needsClaim, mayForce }: { readonly needsClaim: boolean; readonly mayForce: boolean },
): ExclusiveLeaseResult {
  return state.exclusivePool.lease({
    ...{ key, podNamespace, podName, podUid, mayForce },
    needsClaim,
    present: new Set(state.exclusiveNics.keys()),
    nowMs: clock.bootMs(),
  });
}

function exhausted(
  { state, settings }: UseCaseDeps,
  result: ExclusiveLeaseResult & { readonly kind: 'exhausted' },
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
  const all = [...state.exclusivePool.state.values()];
  const isWaiting = ({ use, registered, claim }: ExclusiveEni) =>
    use !== 'leased' && registered === true && claim === undefined;
  const registered = all.filter(isWaiting).length;
  const count = (use: ExclusiveEni['use']): number => all.filter((eni) => eni.use === use && !isWaiting(eni)).length;
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
