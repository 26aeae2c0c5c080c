import { messageOf } from '../../runtime/error-text.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import type { LeaseKey, LeasePlugin } from '../journal/lease.ts';
import { ANY_UID, claimKey } from '../journal/supply.ts';
import { findClaimUids, mayUse, type PodIdentity, type StaticLeaseResult } from '../pool/lease-static.ts';
import type { PoolAddress } from '../pool/pool-state.ts';
import type { UseCaseDeps } from '../state/ports.ts';
import type { AddressSource } from './lease-in-time.ts';

/**
 * Takes the static address of a Pod, and never another. It did not cool after the last Pod of the name, so connections
 * of that are ended first.
 */
export function staticAddressSource(
  deps: UseCaseDeps,
  key: LeaseKey,
  pod: PodIdentity,
  kind: LeasePlugin,
): AddressSource {
  const { state } = deps;
  let lastResult: StaticLeaseResult | undefined;
  return {
    waiting: { podNamespace: pod.namespace, podName: pod.name, isStatic: true },
    take: (families) => {
      lastResult = state.pool.leaseStatic({ key, pod, families, enis: state.servingEnis(kind) });
      return lastResult.kind === 'leased' ? lastResult.addresses : undefined;
    },
    prepare: async () => {
      if (lastResult?.kind !== 'leased' || !lastResult.isNew) return;
      const ips = lastResult.addresses.map(({ ip }) => ip);
      const returnAddresses = (): void => {
        state.pool.release({ key, nowMs: deps.clock.bootMs(), cooldownMs: 0 });
        state.changed.notify();
      };
      try {
        await deps.conntrack.flushOrThrow(ips);
      } catch (error) {
        returnAddresses();
        throw new CniFailureError(
          CNI_CODE.kernel,
          `connections of the last Pod with ${ips.join(', ')} cannot be ended`,
          messageOf(error),
        );
      }
      // The address may have been moved to the next Pod of the name by force, and no recorded lease shows that it was
      // in use here.
      if (ips.every((ip) => isStillFor(state.pool.state.addresses.get(ip), pod))) return;
      returnAddresses();
      throw new CniFailureError(
        CNI_CODE.poolExhausted,
        `the address kept for ${claimKey(pod)} was taken off this node meanwhile`,
      );
    },
    failure: (waitedMs) => {
      const reason =
        lastResult?.kind === 'waits'
          ? lastResult.reason
          : `no ENI of this node can serve the address kept for ${claimKey(pod)} yet`;
      const isOff =
        !deps.settings.isCiliumPool && state.supply !== undefined && state.supply.isStaticIpEnabled !== true;
      const lines = [
        deps.settings.isCiliumPool
          ? `spec.ipam.pool of the CiliumNode has to name owner: ${claimKey(pod)} for an address`
          : '',
        isOff ? 'Pods of this node may not keep their addresses: see spec.enableStaticIP of its NodeENIConfig' : '',
        ...[...state.eniProblems.values()].map(({ eniId, text }) => `${eniId}: ${text}`),
        state.distrusted ?? state.supplyWaitsFor() ?? '',
      ];
      return new CniFailureError(
        CNI_CODE.poolExhausted,
        `${reason} (waited ${Math.round(waitedMs / 1000)} s)`,
        lines.filter((line) => line !== '').join('\n'),
      );
    },
  };
}

/** Reports whether the address is still the Pod's: during the flush another supply may have come into force. */
function isStillFor(address: PoolAddress | undefined, { uid }: PodIdentity): boolean {
  return address?.supplyState === 'assigned' && address.next === undefined && mayUse(address.claim?.uid, uid);
}

/**
 * How long to wait for the watch, which normally delivers a Pod before kubelet sends its ADD; a request would cost the
 * API server more.
 */
const VIEW_WAIT_MS = 500;

/**
 * Reports whether a Pod gets its static IP, and no other address. Asks the API server only where static IPs are enabled,
 * and only for a Pod that is not known.
 * @param untilMs End of the wait, milliseconds since boot.
 * @throws CniFailureError 11 when it cannot be determined: an address of the pool might be the wrong one forever.
 */
export async function needsStaticIp(
  { clock, state }: Pick<UseCaseDeps, 'clock' | 'state'>,
  pod: PodIdentity,
  untilMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  // Not a Pod of Kubernetes: without a name it can have no static IP.
  if (pod.name === '') return false;
  const decide = (): boolean | undefined =>
    decideStaticIp({
      uid: pod.uid,
      markUids: findClaimUids(state.pool.state, pod)?.uids,
      isRequested: state.staticIpLookup.cached(pod),
      isEnabled: state.supply?.isStaticIpEnabled === true,
    });
  const viewUntilMs = Math.min(untilMs, clock.bootMs() + VIEW_WAIT_MS);
  for (;;) {
    const decided = decide();
    if (decided !== undefined) return decided;
    const nowMs = clock.bootMs();
    if (nowMs >= viewUntilMs || signal.aborted) break;
    // Notified when a Pod or a supply came.
    await state.demandChanged.wait(viewUntilMs - nowMs, signal);
  }
  const answer = await state.staticIpLookup.fetch(pod, signal);
  if (typeof answer === 'boolean') return answer;
  const decided = decide();
  if (decided !== undefined) return decided;
  throw new CniFailureError(
    CNI_CODE.tryAgainLater,
    `it is not known yet whether ${pod.namespace}/${pod.name} keeps its address`,
    answer.why,
  );
}

/** What is known of a Pod that needs an address. */
type StaticIpFacts = {
  /** '' when the runtime gives none. */
  readonly uid: string;
  /** The uids in the claim marks of its name in the supply; undefined: there is no mark of its name. */
  readonly markUids: ReadonlySet<string> | undefined;
  /** Whether the Pod itself requests a static IP; undefined: the Pod is not known. */
  readonly isRequested: boolean | undefined;
  /** Pods of the node may have static IPs. */
  readonly isEnabled: boolean;
};

/**
 * Decides whether a Pod gets its static IP, and no other address; undefined when it cannot be determined. A claim mark
 * with the Pod's own uid was written by ipamd; it is valid without asking the API server. Otherwise the Pod decides;
 * otherwise a mark of its name, which a Pod without a static IP does not have. On a node without static IPs no question
 * is needed.
 */
function decideStaticIp({ uid, markUids, isRequested, isEnabled }: StaticIpFacts): boolean | undefined {
  if (markUids?.has(ANY_UID) === true) return true;
  if (uid !== '' && markUids?.has(uid) === true) return true;
  if (isRequested !== undefined) return isRequested;
  if (markUids !== undefined) return true;
  return isEnabled ? undefined : false;
}
