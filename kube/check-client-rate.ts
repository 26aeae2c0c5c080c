import type { Faults } from '../runtime/decode.ts';

/** Adds a fault when fewer calls may be made at once than in a second; `flags` is what their two flags begin with. */
export function checkClientRate(
  settings: { readonly kubeClientQps: number; readonly kubeClientBurst: number },
  faults: Faults,
  flags = 'kube-client',
): void {
  const { kubeClientQps, kubeClientBurst } = settings;
  if (kubeClientBurst < kubeClientQps) {
    faults.add(`--${flags}-burst`, `at least --${flags}-qps, ${kubeClientQps}`, kubeClientBurst);
  }
}
