import { listOf, recordOf, textOf } from '../runtime/json.ts';

const NO_IPS: readonly string[] = Object.freeze([]);

/** Reads the addresses of a Pod: that of the cluster's first family comes first. `status`: of the Pod; any shape is accepted. */
export function readPodIps(status: Readonly<Record<string, unknown>>): readonly string[] {
  const list = listOf(status['podIPs']);
  const ips = list.map((one: unknown) => textOf(recordOf(one)['ip'])).filter((ip) => ip !== '');
  // A copy, because the array that `filter` returns has capacity for sixteen more.
  if (ips.length > 0) return [...ips];
  // Kubelets that know one family only write just this field.
  const only = textOf(status['podIP']);
  return only === '' ? NO_IPS : [only];
}
