import { Counter, Gauge, type Registry } from 'prom-client';

/** Metrics of the pool of GlobalRoute Pods: the addresses of the node's podCIDR. */
export type PodCidrMetrics = {
  /** Addresses by state; undefined where no Pod is on the bridge. */
  podCidr(states: Readonly<Record<'used' | 'cooling' | 'free', number>> | undefined, isMissing: boolean): void;
  /** An ADD found no address of the podCIDR. */
  blockFull(): void;
};

/** Creates them in the registry of the agent. */
export function createPodCidrMetrics(registry: Registry): PodCidrMetrics {
  const registers = [registry];
  const addresses = new Gauge({
    name: 'tke_eni_pod_cidr_addresses',
    help: "Addresses of the node's podCIDR by state: used by a GlobalRoute Pod, cooling, free. None where no Pod is on the bridge.",
    labelNames: ['state'],
    registers,
  });
  const missing = new Gauge({
    name: 'tke_eni_pod_cidr_missing',
    help: '1 while GlobalRoute Pods are expected on the node and it has no podCIDR for them, or only one that is refused; else 0.',
    registers,
  });
  const full = new Counter({
    name: 'tke_eni_pod_cidr_full_total',
    help: 'ADDs of GlobalRoute Pods that failed because every address of the podCIDR was in use.',
    registers,
  });
  return {
    podCidr: (states, isMissing) => {
      addresses.reset();
      for (const [state, count] of Object.entries(states ?? {})) addresses.set({ state }, count);
      missing.set(isMissing ? 1 : 0);
    },
    blockFull: () => full.inc(),
  };
}
