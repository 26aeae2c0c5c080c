import { isInCidr } from '../../crd/ip-text.ts';
import { LOAD_BALANCERS } from '../../crd/node-eni-config-fields.ts';
import { readNodeEniConfig } from '../../crd/read-node-eni-config.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { Faults } from '../../runtime/decode.ts';
import { recordOf } from '../../runtime/json.ts';

/** What is cached of a NodeENIConfig: there may be thousands. */
export type RegisteredNode = {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Addresses that are published as targets; undefined: the field is absent. */
  readonly published: readonly string[] | undefined;
  /** Addresses of its ENIs in one text, each between blanks: a text of a thousand nodes takes a tenth of their lists. */
  readonly addresses: string;
  /** Networks of its ENIs. */
  readonly subnets: readonly string[];
};

/** Reads what is cached of a NodeENIConfig. Accepts any shape. */
export function decodeRegisteredNode(object: KubeObject): RegisteredNode {
  const { metadata, loadBalancers } = object;
  const { name, uid = '', resourceVersion = '' } = metadata;
  const enis = readNodeEniConfig(object)?.config.status?.eniInfos ?? [];
  const ips = enis.flatMap(({ primaryIP, addresses = [] }) => [primaryIP ?? '', ...addresses.map(({ ip }) => ip)]);
  const listed = recordOf(loadBalancers)['registeredIPs'];
  const published =
    listed === undefined || listed === null
      ? undefined
      : (LOAD_BALANCERS.registeredIPs.decoder(listed, '', new Faults()) ?? []);
  const addresses = ` ${ips.join(' ')} `;
  const subnets = [...new Set(enis.flatMap(({ subnetCIDR }) => subnetCIDR ?? []))];
  return { name, uid, resourceVersion, published, addresses, subnets };
}

/** Lists the addresses of the ENIs of a node. */
export function listAddresses({ addresses }: Pick<RegisteredNode, 'addresses'>): readonly string[] {
  return addresses.split(' ').filter((ip) => ip !== '');
}

/** Reports whether an ENI of a node has an address. */
export function hasAddress({ addresses }: Pick<RegisteredNode, 'addresses'>, ip: string): boolean {
  return addresses.includes(` ${ip} `);
}

/**
 * Reports whether an address may be registered, as a NodeENIConfig is after the address was published in it: it is
 * assigned, and neither offered back nor being taken. An address of none of its subnets is not the ENIs' matter.
 */
export function mayRegister(object: KubeObject, ip: string): boolean {
  const { spec, status } = readNodeEniConfig(object)?.config ?? {};
  const enis = status?.eniInfos ?? [];
  for (const { eniID, mode, primaryIP, state, assignmentID, addresses = [] } of enis) {
    if (mode === 'direct-eni' && primaryIP === ip) {
      const isOffered = spec?.releasableENIs?.some((one) => one.eniID === eniID && one.assignmentID === assignmentID);
      return state === 'Attached' && isOffered !== true;
    }
    const address = addresses.find((one) => one.ip === ip);
    if (address === undefined) continue;
    const isOffered = spec?.releasableIPs?.some((one) => one.ip === ip && one.assignmentID === address.assignmentID);
    return address.state === 'Assigned' && isOffered !== true;
  }
  return !enis.some(({ subnetCIDR }) => subnetCIDR !== undefined && isInCidr(ip, subnetCIDR));
}
