import { CNI_CODE } from './api/cni-code.ts';
import { CniFailureError } from './cni-failure.ts';
import type { LeaseKey } from './journal/lease.ts';
import { claimKey } from './journal/supply.ts';
import type { KeptLeaseResult, PodIdentity } from './pool/lease-kept.ts';
import type { PoolAddress } from './pool/pool-state.ts';
import type { UseCaseDeps } from './ports.ts';
import type { Taker } from './taker.ts';

/**
 * Takes the static address of a Pod, and never another. It did not cool, so connections of its last owner are ended
 * first.
 */
export function keptTaker(deps: UseCaseDeps, key: LeaseKey, pod: PodIdentity): Taker {
  const { state } = deps;
  let last: KeptLeaseResult | undefined;
  return {
    waiting: { podNamespace: pod.namespace, podName: pod.name, keepsAddress: true },
    take: (families) => {
      last = state.pool.leaseKept({ key, pod, families, enis: state.readyEnis });
      return last.kind === 'leased' ? last.addresses : undefined;
    },
    prepare: async () => {
      if (last?.kind !== 'leased' || !last.isNew) return;
      const ips = last.addresses.map(({ ip }) => ip);
      const giveBack = (): void => {
        state.pool.release({ key, nowMs: deps.clock.bootMs(), cooldownMs: 0 });
        state.changed.notify();
      };
      try {
        await deps.conntrack.flushSurely(ips);
      } catch (error) {
        giveBack();
        throw new CniFailureError(
          CNI_CODE.kernel,
          `connections of the last Pod with ${ips.join(', ')} cannot be ended`,
          error instanceof Error ? error.message : String(error),
        );
      }
      // The address may have been moved to the next Pod of the name by force, and no recorded lease shows that it was
      // in use here.
      if (ips.every((ip) => isStillFor(state.pool.state.addresses.get(ip), pod))) return;
      giveBack();
      throw new CniFailureError(
        CNI_CODE.poolExhausted,
        `the address kept for ${claimKey(pod)} was taken off this node meanwhile`,
      );
    },
    failure: (waitedMs) => {
      const reason =
        last?.kind === 'waits'
          ? last.reason
          : `no ENI of this node can serve the address kept for ${claimKey(pod)} yet`;
      const isOff = state.supply !== undefined && state.supply.isStaticIpEnabled !== true;
      const lines = [
        isOff ? 'Pods of this node may not keep their addresses: see spec.enableStaticIP of its NodeENIConfig' : '',
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

/** Tells whether the address is still the Pod's: during the flush another supply may have come into force. */
function isStillFor(address: PoolAddress | undefined, { uid }: PodIdentity): boolean {
  return address?.standing === 'assigned' && address.next === undefined && address.claim?.uid === uid;
}
