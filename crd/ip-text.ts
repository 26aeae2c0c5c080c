import type { Decoder } from '../runtime/decode.ts';
import { canonicalIp, parseIp, parseIpv4Number, sharePrefix } from '../runtime/ip-text.ts';

/** A network in CIDR notation. */
type Cidr = { readonly address: string; readonly prefixLength: number; readonly family: 4 | 6 };

/** Decodes an IP address of one family into its shortest form, so that equal addresses are equal texts. */
export function ipAddress(family: 4 | 6): Decoder<string> {
  return (value, path, faults) => {
    const ip = typeof value === 'string' && familyOf(value) === family ? canonicalIp(value) : undefined;
    if (ip === undefined) faults.add(path, `an IPv${family} address`, value);
    return ip;
  };
}

/** Decodes an IP address of either family into its shortest form. */
export const anyIpAddress: Decoder<string> = (value, path, faults) => {
  const ip = typeof value === 'string' ? canonicalIp(value) : undefined;
  if (ip === undefined) faults.add(path, 'an IP address', value);
  return ip;
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
  const [written = '', length = '', ...rest] = text.split('/');
  const address = canonicalIp(written);
  const prefixLength = Number(length);
  if (address === undefined || rest.length > 0 || !/^\d{1,3}$/.test(length)) return undefined;
  const family = familyOf(address);
  if (prefixLength > (family === 4 ? 32 : 128) || hasHostBits(address, prefixLength, family)) return undefined;
  return { address, prefixLength, family };
}

/** Returns the last address of an IPv4 network, its broadcast address. */
export function lastOf({ address, prefixLength }: Cidr): string {
  return ipv4Text(ipv4Number(address) + 2 ** (32 - prefixLength) - 1);
}

/** Writes a number from 0 to 2^32 - 1 as an IPv4 address. */
function ipv4Text(bits: number): string {
  return [2 ** 24, 2 ** 16, 2 ** 8, 1].map((unit) => Math.floor(bits / unit) % 256).join('.');
}

/** Reports whether an address is in a network; false when either is malformed or the families differ. */
export function isInCidr(ip: string, network: string): boolean {
  const parsed = parseCidr(network);
  if (parsed === undefined || familyOf(ip) !== parsed.family) return false;
  if (parsed.family === 4) {
    const address = ipv4Number(ip);
    const hosts = 2 ** (32 - parsed.prefixLength);
    return address >= 0 && Math.floor(address / hosts) === Math.floor(ipv4Number(parsed.address) / hosts);
  }
  const [bytes, start] = [parseIp(ip), parseIp(parsed.address)];
  return bytes !== undefined && start !== undefined && sharePrefix(bytes, start, parsed.prefixLength);
}

/** The family that a text can be an address of. */
function familyOf(text: string): 4 | 6 {
  return text.includes(':') ? 6 : 4;
}

function hasHostBits(address: string, prefixLength: number, family: 4 | 6): boolean {
  if (family === 4) return ipv4Number(address) % 2 ** (32 - prefixLength) !== 0;
  const bytes = parseIp(address) ?? new Uint8Array();
  const network = bytes.map((byte, at) => byte & (0xff00 >> Math.min(8, Math.max(0, prefixLength - 8 * at))));
  return !sharePrefix(bytes, network, 128);
}

/**
 * Converts an IPv4 address to a number from 0 to 2^32 - 1; -1 for any other text. Allocates nothing: every address of
 * every object that is read comes through here.
 */
function ipv4Number(ip: string): number {
  return parseIpv4Number(ip, ip.length);
}
