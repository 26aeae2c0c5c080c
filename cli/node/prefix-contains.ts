import { parseIp } from '../../netlink/ip-text.ts';

/** Returns the length of a prefix in bits; 0 for the absent prefix of a default route. */
export function prefixBits(prefix: string | undefined): number {
  return prefix === undefined ? 0 : Number(prefix.slice(prefix.indexOf('/') + 1));
}

/** Tells whether a prefix contains an address. An absent prefix contains all, one of another family none. */
export function prefixContains(prefix: string | undefined, address: string): boolean {
  if (prefix === undefined) return true;
  const bytes = bytesOf(address);
  const network = bytesOf(prefix.slice(0, prefix.indexOf('/')));
  if (bytes === undefined || network === undefined || bytes.length !== network.length) return false;
  const bits = prefixBits(prefix);
  for (let at = 0; at < bits; at += 8) {
    const mask = bits - at >= 8 ? 0xff : 0xff & (0xff << (8 - (bits - at)));
    const index = at >> 3;
    if ((((bytes[index] ?? 0) ^ (network[index] ?? 0)) & mask) !== 0) return false;
  }
  return true;
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
