import { formatIp, parseIp } from '../../runtime/ip-text.ts';

/** An IP prefix as a number, for comparisons: the bits of its network, and how many of them count. */
type Prefix = { readonly family: 4 | 6; readonly value: bigint; readonly length: number };

/** Most prefixes that are remembered: parsing costs more than all else that the model does with a route. */
const REMEMBERED = 50_000;
const known = new Map<string, Prefix>();

/** Parses `10.0.0.0/8` or an address, whose prefix has the whole length. @throws Error for anything else */
export function parsePrefix(text: string): Prefix {
  const found = known.get(text);
  if (found !== undefined) return found;
  const [address = '', length] = text.split('/');
  const bytes = parseIp(address);
  if (bytes === undefined) throw new Error(`the model of the kernel got ${JSON.stringify(text)} for an IP prefix`);
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  const prefix: Prefix = {
    family: bytes.length === 4 ? 4 : 6,
    value,
    length: length === undefined ? bytes.length * 8 : Number(length),
  };
  if (known.size >= REMEMBERED) known.clear();
  known.set(text, prefix);
  return prefix;
}

/** Reports whether an address, or a longer prefix, lies in `prefix`; everything lies in none at all. */
export function isWithin(inner: string, prefix: string | undefined): boolean {
  if (prefix === undefined) return true;
  const [one, other] = [parsePrefix(inner), parsePrefix(prefix)];
  if (one.family !== other.family || one.length < other.length) return false;
  const shift = BigInt(bitsOf(other.family) - other.length);
  return one.value >> shift === other.value >> shift;
}

/** Renders a prefix as the kernel reports it: its own spelling of the address, always with a length. */
export function canonicalPrefix(text: string): string {
  const { family, value, length } = parsePrefix(text);
  return `${render(family, value)}/${length}`;
}

/** Returns the network of an address: `10.0.0.9`, 24 gives `10.0.0.0/24`. */
export function networkOf(address: string, length: number): string {
  const { family, value } = parsePrefix(address);
  const shift = BigInt(bitsOf(family) - length);
  return `${render(family, (value >> shift) << shift)}/${length}`;
}

/** Returns the last address of an IPv4 prefix, which is its broadcast address. */
export function lastOf(address: string, length: number): string {
  const { family, value } = parsePrefix(address);
  return render(family, value | ((1n << BigInt(bitsOf(family) - length)) - 1n));
}

/** Number of bits of an address. */
function bitsOf(family: 4 | 6): number {
  return family === 4 ? 32 : 128;
}

/** Returns the link-local address that the kernel makes of a MAC. @see RFC 4291 appendix A */
export function linkLocalOf(mac: string): string {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = mac.split(':').map((byte) => Number.parseInt(byte, 16));
  return formatIp(Uint8Array.from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f]), 0, 16);
}

function render(family: 4 | 6, value: bigint): string {
  const count = bitsOf(family) / 8;
  const bytes = Uint8Array.from({ length: count }, (_, at) => Number((value >> BigInt((count - 1 - at) * 8)) & 255n));
  return formatIp(bytes, 0, count);
}
