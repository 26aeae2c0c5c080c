import { isIP, isIPv6 } from 'node:net';
import type { Instance } from '../../cloud/cloud.ts';
import { parseCidr } from '../../crd/ip-text.ts';
import type { CloudNode, NodeAddress } from './cloud-node.ts';

/** Annotation of the kubelet's `--node-ip`: one address, or one of each family separated by a comma. */
export const PROVIDED_IP_ANNOTATION = 'alpha.kubernetes.io/provided-node-ip';

/** All addresses of a Node; `foreign` when an address that the kubelet provided is none of its instance. */
type AddressPlan =
  | { readonly kind: 'addresses'; readonly addresses: readonly NodeAddress[] }
  | { readonly kind: 'foreign'; readonly ip: string }
  | { readonly kind: 'none' };

const NAMES: readonly string[] = ['Hostname', 'InternalDNS', 'ExternalDNS'];

/**
 * Plans the addresses of a Node: what the kubelet provided first and alone of its type and family, then the rest of the
 * instance; names stay as the kubelet wrote them. `none` while the cloud reports no address of the instance.
 */
export function planAddresses(
  { name, addresses, annotations }: Pick<CloudNode, 'name' | 'addresses' | 'annotations'>,
  { privateIps, publicIps = [], ipv6s = [] }: Pick<Instance, 'privateIps' | 'publicIps' | 'ipv6s'>,
): AddressPlan {
  const internal = [...privateIps, ...ipv6s].map((address) => ({ type: 'InternalIP', address }));
  const external = publicIps.map((address) => ({ type: 'ExternalIP', address }));
  if (internal.length === 0) return { kind: 'none' };
  const provided: NodeAddress[] = [];
  for (const ip of providedIps(annotations)) {
    const found = [...internal, ...external].find(({ address }) => shortest(address) === shortest(ip));
    if (found === undefined) return { kind: 'foreign', ip };
    provided.push(found);
  }
  const [primary] = privateIps;
  const [ipv6] = ipv6s;
  // Further addresses of the primary ENI may be those of Pods.
  const own = [...internal.filter(({ address }) => address === primary || address === ipv6), ...external];
  const rest = own.filter((one) => !provided.some((first) => groupOf(first) === groupOf(one)));
  const names = addresses.filter(({ type }) => NAMES.includes(type));
  const named = names.some(({ type }) => type === 'Hostname') ? names : [{ type: 'Hostname', address: name }, ...names];
  return { kind: 'addresses', addresses: [...provided, ...rest, ...named] };
}

/** Reads the addresses that the kubelet provided; none without the annotation. */
export function providedIps(annotations: CloudNode['annotations']): readonly string[] {
  const text = annotations[PROVIDED_IP_ANNOTATION] ?? '';
  return text === '' ? [] : text.split(',').map((one) => one.trim());
}

function groupOf({ type, address }: NodeAddress): string {
  return `${type}/${isIP(address)}`;
}

function shortest(ip: string): string {
  return parseCidr(`${ip}/${isIPv6(ip) ? 128 : 32}`)?.address ?? ip;
}
