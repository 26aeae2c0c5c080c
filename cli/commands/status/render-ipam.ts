import { plainText } from '../../../runtime/plain-text.ts';
import type { AddressView } from '../pool/pool-view.ts';

/**
 * Renders the addresses of a node whose supply is a CiliumNode in the words of `cilium status --all-addresses`: how many
 * of each family are allocated, of how many, and by whom.
 */
export function renderIpam(addresses: readonly AddressView[]): string {
  const families = ([4, 6] as const).flatMap((family) => {
    const all = addresses.filter((address) => address.family === family);
    // An address out of the pool is allocated, and not one of it.
    const listed = all.filter(({ isUnlisted }) => isUnlisted !== true).length;
    return all.length === 0 ? [] : [`IPv${family}: ${all.filter(isAllocated).length}/${listed} allocated`];
  });
  const lines = addresses
    .filter(isAllocated)
    .map((address) => `  ${address.ip} (${plainText(ownerOf(address))})\n`)
    .sort();
  return `IPAM: ${families.join(', ') || 'IPv4: 0/0 allocated'}\nAllocated addresses:\n${lines.join('')}`;
}

/** In use by a Pod, or reserved for the node: such an owner is no Pod, and has no slash. */
function isAllocated({ use, keptFor }: AddressView): boolean {
  return use === 'in-use' || keptFor?.pods.includes('/') === false;
}

function ownerOf({ owner, keptFor }: AddressView): string {
  if (owner === undefined) return keptFor?.pods ?? '';
  const { podNamespace, podName, containerId } = owner;
  return podName === '' ? containerId : `${podNamespace}/${podName}`;
}
