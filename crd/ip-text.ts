import { isIP, SocketAddress } from 'node:net';
import type { Decoder } from '../runtime/decode.ts';

/** A network in CIDR notation. */
type Cidr = { readonly address: string; readonly prefixLength: number; readonly family: 4 | 6 };

/** Decodes an IP address of one family into its shortest form, so that equal addresses are equal texts. */
export function ipAddress(family: 4 | 6): Decoder<string> {
  return (value, path, faults) => {
    if (typeof value === 'string' && familyOf(value) === family) return canonicalIp(value, family);
    faults.add(path, `an IPv${family} address`, value);
    return undefined;
  };
}

/** Decodes an IP address of either family into its shortest form. */
export const anyIpAddress: Decoder<string> = (value, path, faults) => {
  const family = typeof value === 'string' ? familyOf(value) : 0;
  if (typeof value === 'string' && (family === 4 || family === 6)) return canonicalIp(value, family);
  faults.add(path, 'an IP address', value);
  return undefined;
};

/** Decodes a network such as 10.0.8.0/22; host bits must be zero. */
export function cidr(family: 4 | 6): Decoder<string> {
  return (value, path, faults) => {
    const parsed = typeof value === 'string' ? parseCidr(value) : undefined;
    if (parsed?.family === family) return `${parsed.address}/${parsed.prefixLength}`;
    faults.add(path, `an IPv${family} network such as ${family === 4 ? '10.0.8.0/22' : 'fd00:8::/64'}`, value);
    return undefined;
  };
}

/** Networks that were parsed before. A cluster has some dozens; ipamd compares each ENI with them at each of its looks. */
const PARSED = new Map<string, Cidr>();
const MAX_PARSED = 1_000;

/** Parses a network of either family; undefined when it is malformed or has host bits set. */
export function parseCidr(text: string): Cidr | undefined {
  const known = PARSED.get(text);
  if (known !== undefined) return known;
  const parsed = readCidr(text);
  if (parsed === undefined) return undefined;
  if (PARSED.size >= MAX_PARSED) PARSED.clear();
  PARSED.set(text, parsed);
  return parsed;
}

function readCidr(text: string): Cidr | undefined {
  const [address = '', length = '', ...rest] = text.split('/');
  const family = familyOf(address);
  const prefixLength = Number(length);
  if ((family !== 4 && family !== 6) || rest.length > 0 || !/^\d{1,3}$/.test(length)) return undefined;
  if (prefixLength > (family === 4 ? 32 : 128)) return undefined;
  if (hasHostBits(address, prefixLength, family)) return undefined;
  return { address: canonicalIp(address, family), prefixLength, family };
}

/** Returns the last address of an IPv4 network, its broadcast address. */
export function lastOf({ address, prefixLength }: Cidr): string {
  return ipv4Text(ipv4Number(address) + 2 ** (32 - prefixLength) - 1);
}

/** Writes a number from 0 to 2^32 - 1 as an IPv4 address. */
export function ipv4Text(bits: number): string {
  return [2 ** 24, 2 ** 16, 2 ** 8, 1].map((unit) => Math.floor(bits / unit) % 256).join('.');
}

/** Tells whether an address is in a network; false when either is malformed or the families differ. */
export function isInCidr(ip: string, network: string): boolean {
  const parsed = parseCidr(network);
  if (parsed === undefined || familyOf(ip) !== parsed.family) return false;
  if (parsed.family === 4) {
    const hosts = 2 ** (32 - parsed.prefixLength);
    return Math.floor(ipv4Number(ip) / hosts) === Math.floor(ipv4Number(parsed.address) / hosts);
  }
  const hostBits = BigInt(128 - parsed.prefixLength);
  return ipv6Bits(ip) >> hostBits === ipv6Bits(parsed.address) >> hostBits;
}

/**
 * Returns the family of an address, 0 when it is none. An address with a zone, such as fe80::1%eth0, counts as none: it
 * has a meaning on one machine only.
 */
function familyOf(text: string): number {
  return text.includes('%') ? 0 : isIP(text);
}

function canonicalIp(ip: string, family: 4 | 6): string {
  // An IPv4 address that isIP accepts has four numbers without leading zeros, so it has one form. SocketAddress would
  // be slow here.
  if (family === 4) return ip;
  return new SocketAddress({ address: ip, family: `ipv${family}` }).address;
}

function hasHostBits(address: string, prefixLength: number, family: 4 | 6): boolean {
  if (family === 4) return ipv4Number(address) % 2 ** (32 - prefixLength) !== 0;
  return (ipv6Bits(address) & ((1n << BigInt(128 - prefixLength)) - 1n)) !== 0n;
}

/**
 * Converts an IPv4 address to a number from 0 to 2^32 - 1. Without a temporary list: every address of every object that
 * is read comes through here.
 */
export function ipv4Number(ip: string): number {
  let bits = 0;
  let octet = 0;
  for (let index = 0; index < ip.length; index++) {
    const code = ip.charCodeAt(index);
    if (code === DOT) {
      bits = bits * 256 + octet;
      octet = 0;
    } else octet = octet * 10 + code - ZERO;
  }
  return bits * 256 + octet;
}

const DOT = 0x2e;
const ZERO = 0x30;

function ipv6Bits(ip: string): bigint {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(ip);
  const hex = (high: string | undefined, low: string | undefined) => ((Number(high) << 8) | Number(low)).toString(16);
  const plain = dotted === null ? ip : `${dotted[1]}${hex(dotted[2], dotted[3])}:${hex(dotted[4], dotted[5])}`;
  const [head = '', tail] = plain.split('::');
  const groups = (part: string) => (part === '' ? [] : part.split(':'));
  const last = groups(tail ?? '');
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - groups(head).length - last.length }, () => '0');
  return [...groups(head), ...zeros, ...last].reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}
