import { Address4 } from 'ip-address';
import type { CloudState } from './state.ts';

/** A network whose host bits are zero; undefined for anything else. */
export function readNetwork(cidr: string): Address4 | undefined {
  const network = /^[\d.]+\/\d+$/.test(cidr) && Address4.isValid(cidr) ? new Address4(cidr) : undefined;
  return network?.startAddress().correctForm() === network?.correctForm() ? network : undefined;
}

/** Whether a network shares addresses with one of the VPC's subnets. */
export function isInVpc(state: Pick<CloudState, 'subnets'>, network: Address4): boolean {
  return [...state.subnets.values()].some(({ cidr }) => {
    const other = new Address4(cidr);
    return network.isInSubnet(other) || other.isInSubnet(network);
  });
}

/** Whether a text is an IPv4 address. */
export function isAddress(text: string): boolean {
  return Address4.isValid(text) && !text.includes('/');
}
