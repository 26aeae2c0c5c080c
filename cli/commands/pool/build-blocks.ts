import { cidrOfBlockId, countUsableAddresses } from '../../../agent/journal/pod-cidr-block.ts';
import type { AddressView, BlockView } from './pool-view.ts';

/**
 * Counts the addresses of each block of GlobalRoute Pods.
 * @param addresses of all Pods and of those that cool; those of ENIs are left out
 * @param podCidrs the present blocks
 */
export function buildBlocks(addresses: readonly AddressView[], podCidrs: readonly string[]): readonly BlockView[] {
  const used = addresses.flatMap(({ eniId }) => cidrOfBlockId(eniId) ?? []);
  return [...new Set([...podCidrs, ...used])].flatMap((cidr): readonly BlockView[] => {
    const ofBlock = addresses.filter(({ eniId }) => cidrOfBlockId(eniId) === cidr);
    const count = (use: AddressView['use']) => ofBlock.filter((address) => address.use === use).length;
    const [inUse, cooling, total] = [count('in-use'), count('cooling'), countUsableAddresses(cidr)];
    const held = count('releasing') + count('offered') + count('registered');
    const isCurrent = podCidrs.includes(cidr);
    // An IPv6 block has no addresses for Pods.
    if (total === 0) return [];
    const free = isCurrent ? Math.max(0, total - inUse - cooling - held) : 0;
    return [{ cidr, isCurrent, total, inUse, cooling, held, free }];
  });
}

/** Returns the addresses of ENIs. */
export function addressesOfEnis(addresses: readonly AddressView[]): readonly AddressView[] {
  return addresses.filter(({ eniId }) => cidrOfBlockId(eniId) === undefined);
}

/** Returns the mark of an address that the supply lacks. One of a block is in no supply, and lacks nothing. */
export function withoutSupply({ eniId }: Pick<AddressView, 'eniId'>): Pick<AddressView, 'isUnlisted'> {
  return cidrOfBlockId(eniId) === undefined ? { isUnlisted: true } : {};
}
