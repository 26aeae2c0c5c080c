import { parseIp, sharePrefix } from '../../runtime/ip-text.ts';

/** Returns the length of a prefix in bits; 0 for the absent prefix of a default route. */
export function prefixBits(prefix: string | undefined): number {
  return prefix === undefined ? 0 : Number(prefix.slice(prefix.indexOf('/') + 1));
}

/** Reports whether a prefix contains an address. An absent prefix contains all, one of another family none. */
export function prefixContains(prefix: string | undefined, address: string): boolean {
  if (prefix === undefined) return true;
  const bytes = bytesOf(address);
  const network = bytesOf(prefix.slice(0, prefix.indexOf('/')));
  return bytes !== undefined && network !== undefined && sharePrefix(bytes, network, prefixBits(prefix));
}

/**
 * Size of the cache of parsed addresses. A node of 200 Pods has a thousand prefixes, and each packet is compared with
 * all.
 */
const MAX_PARSED = 20_000;
const parsed = new Map<string, Uint8Array | undefined>();

function bytesOf(text: string): Uint8Array | undefined {
  if (parsed.has(text)) return parsed.get(text);
  if (parsed.size >= MAX_PARSED) parsed.clear();
  const bytes = parseIp(text);
  parsed.set(text, bytes);
  return bytes;
}
