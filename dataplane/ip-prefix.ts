import { BlockList } from 'node:net';
import { compareTexts } from '../runtime/compare-texts.ts';
import { canonicalIp, formatIp, parseIp } from '../runtime/ip-text.ts';

/** An IP family by its version number. */
export type Family = 4 | 6;

/**
 * Returns the family of an address or prefix by its text.
 */
export function familyOf(text: string): Family {
  return text.includes(':') ? 6 : 4;
}

/** Reports whether the text is an address without prefix length. */
export function isAddress(text: string): boolean {
  return parseIp(text) !== undefined;
}

/** Reports whether the text is `address/length` with a length that fits the family. */
export function isPrefix(text: string): boolean {
  const [address = '', length = '', ...rest] = text.split('/');
  return (
    rest.length === 0 && isAddress(address) && /^\d{1,3}$/.test(length) && Number(length) <= bits(familyOf(address))
  );
}

/**
 * Renders an address the way the kernel's tools print it (IPv6 lower case and shortened), so that texts can be
 * compared. Other text is returned unchanged.
 */
export function canonicalAddress(address: string): string {
  return canonicalIp(address) ?? address;
}

/** Renders a prefix with a canonical address; its host bits are kept. */
export function canonicalPrefix(prefix: string): string {
  const [address = '', length = ''] = prefix.split('/');
  return `${canonicalAddress(address)}/${length}`;
}

/** Renders a prefix with a canonical address whose host bits are zero, as the kernel wants the destination of a route. */
export function networkPrefix(prefix: string): string {
  const [address = ''] = prefix.split('/');
  const length = prefixLength(prefix);
  const bytes = parseIp(address)?.map((byte, at) => byte & (0xff00 >> Math.min(8, Math.max(0, length - 8 * at))));
  return bytes === undefined ? prefix : `${formatIp(bytes, 0, bytes.length)}/${length}`;
}

/** Reports whether an IPv6 address or prefix is link-local. */
export function isLinkLocal(text: string): boolean {
  return text.toLowerCase().startsWith('fe80:');
}

/** Returns the link-local address that the kernel makes of a MAC. @see RFC 4291 appendix A, modified EUI-64 */
export function linkLocalPrefix(mac: string): string {
  const [first = 0, ...others] = mac.split(':').map((byte) => Number.parseInt(byte, 16));
  const [b = 0, c = 0, ...rest] = others;
  const bytes = Uint8Array.of(0xfe, 0x80, 0, 0, 0, 0, 0, 0, first ^ 2, b, c, 0xff, 0xfe, ...rest);
  return `${formatIp(bytes, 0, bytes.length)}/64`;
}

/** Returns the last address of a network, which of IPv4 is its broadcast address; the host bits of the prefix do not matter. */
export function lastAddress(prefix: string): string {
  const [address = ''] = prefix.split('/');
  const length = prefixLength(prefix);
  const bytes = parseIp(address)?.map((byte, at) => byte | (0xff >> Math.min(8, Math.max(0, length - 8 * at))));
  return bytes === undefined ? address : formatIp(bytes, 0, bytes.length);
}

/** Returns the prefix of this one address: /32 or /128. The only place where the families differ in the data plane. */
export function hostPrefix(address: string): string {
  return `${canonicalAddress(address)}/${bits(familyOf(address))}`;
}

/** Reports whether a prefix contains one address alone: /32 of IPv4, /128 of IPv6. */
export function isHostPrefix(prefix: string | undefined): prefix is string {
  return prefix !== undefined && prefixLength(prefix) === bits(familyOf(prefix));
}

/** Removes the length of a host prefix, as ip(8) does. Another prefix is returned unchanged. */
export function withoutHostLength(prefix: string): string {
  return isHostPrefix(prefix) ? prefix.slice(0, prefix.lastIndexOf('/')) : prefix;
}

/** Returns the prefix of the whole family: the destination of a default route. */
export function anyPrefix(family: Family): string {
  return family === 4 ? '0.0.0.0/0' : '::/0';
}

/** Returns the length of a prefix in bits. */
export function prefixLength(prefix: string): number {
  return Number(prefix.slice(prefix.indexOf('/') + 1));
}

/** Drops prefixes that lie inside others, sorted: nft(8) refuses overlapping intervals in one set. */
export function withoutContained(prefixes: readonly string[]): readonly string[] {
  const kept: string[] = [];
  const covered = new BlockList();
  for (const prefix of [...prefixes]
    .map(canonicalPrefix)
    .sort((a, b) => prefixLength(a) - prefixLength(b) || compareTexts(a, b))) {
    const [network = ''] = prefix.split('/');
    const family = familyOf(prefix) === 4 ? 'ipv4' : 'ipv6';
    if (covered.check(network, family)) continue;
    covered.addSubnet(network, prefixLength(prefix), family);
    kept.push(prefix);
  }
  return kept.sort();
}

function bits(family: Family): 32 | 128 {
  return family === 4 ? 32 : 128;
}
