import { listOf, recordOf, textOf } from '../runtime/json.ts';
import { DIRECT_ENI_RESOURCE, ENI_IP_RESOURCE } from './names.ts';
import type { NetworkName, PodNetworks } from './pod-networks.ts';

const NO_IPS: readonly string[] = Object.freeze([]);

/** Reads the addresses of a Pod: that of the cluster's first family comes first. `status`: of the Pod; any shape is accepted. */
export function readPodIps(status: Readonly<Record<string, unknown>>): readonly string[] {
  const ips = listOf(status['podIPs'])
    .map((one) => textOf(recordOf(one)['ip']))
    .filter((ip) => ip !== '');
  // A copy, because the array that `filter` returns has capacity for sixteen more.
  if (ips.length > 0) return [...ips];
  // Kubelets that know one family only write just this field.
  const only = textOf(status['podIP']);
  return only === '' ? NO_IPS : [only];
}

/** Reports whether all containers of a Pod have ended for good: it has no address any more. `status`: of the Pod. */
export function hasPodEnded(status: Readonly<Record<string, unknown>>): boolean {
  return status['phase'] === 'Succeeded' || status['phase'] === 'Failed';
}

/** Reports whether a container of a Pod requests an extended resource. `spec`: of the Pod; any shape is accepted. */
export function requestsResource(spec: unknown, resource: string): boolean {
  return listOf(recordOf(spec)['containers']).some((container) => {
    const { limits, requests } = recordOf(recordOf(container)['resources']);
    return [limits, requests].some((one) => recordOf(one)[resource] !== undefined);
  });
}

/**
 * Decides the network of a Pod: that of its annotation, else that of the resource which it requests.
 * @param networks as `readPodNetworks` reads the annotation
 * @param spec of the Pod; any shape is accepted
 * @returns undefined where neither says anything: the default of the node decides
 */
export function networkOfPod(networks: PodNetworks, spec: unknown): NetworkName | undefined {
  if (networks.kind === 'named') return networks.name;
  if (requestsResource(spec, DIRECT_ENI_RESOURCE)) return 'tke-direct-eni';
  return requestsResource(spec, ENI_IP_RESOURCE) ? 'tke-route-eni' : undefined;
}
