import { messageOf } from '../../runtime/error-text.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import type { LeaseKey, LeasePlugin } from '../journal/lease.ts';
import { claimKey } from '../journal/supply.ts';
import { mayUse, type PodIdentity, type StaticLeaseResult } from '../pool/lease-static.ts';
import type { PoolAddress } from '../pool/pool-state.ts';
import type { UseCaseDeps } from '../state/ports.ts';
import type { AddressSource } from './address-source.ts';

/**
 * Takes the static address of a Pod, and never another. It did not cool, so connections of its last owner are ended
 * first.
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

/** Tells whether the address is still the Pod's: during the flush another supply may have come into force. */
function isStillFor(address: PoolAddress | undefined, { uid }: PodIdentity): boolean {
  return address?.supplyState === 'assigned' && address.next === undefined && mayUse(address.claim?.uid, uid);
}
