import type { Faults } from '../runtime/decode.ts';

/** Adds a fault when fewer calls may be made at once than in a second. */
export function checkClientRate(
  settings: { readonly kubeClientQps: number; readonly kubeClientBurst: number },
  faults: Faults,
): void {
  const { kubeClientQps, kubeClientBurst } = settings;
  if (kubeClientBurst < kubeClientQps) {
    faults.add('--kube-client-burst', `at least --kube-client-qps, ${kubeClientQps}`, kubeClientBurst);
  }
}
