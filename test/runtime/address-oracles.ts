import { isIP, SocketAddress } from 'node:net';
import { Address4, Address6 } from 'ip-address';
import { canonicalIp } from '../../runtime/ip-text.ts';

/** How our module, the package `ip-address` and Node print one text; undefined: refused. */
export type Prints = { readonly own?: string; readonly library?: string; readonly node?: string };

/** Prints a text in all three ways. The library is not asked for what it takes beyond an address: lengths and zones. */
export function printsOf(text: string): Prints {
  const [own, library, node] = [canonicalIp(text), ofLibrary(text), ofNode(text)];
  return {
    ...(own === undefined ? {} : { own }),
    ...(library === undefined ? {} : { library }),
    ...(node === undefined ? {} : { node }),
  };
}

function ofLibrary(text: string): string | undefined {
  const Reader = text.includes(':') ? Address6 : Address4;
  return /[/%]/.test(text) || !Reader.isValid(text) ? undefined : new Reader(text).correctForm();
}

function ofNode(text: string): string | undefined {
  const family = text.includes('%') ? 0 : isIP(text);
  if (family === 0) return undefined;
  return family === 4 ? text : new SocketAddress({ address: text, family: 'ipv6' }).address;
}

/** Makes an address text: of bytes, of groups with runs of zeros, in several spellings, and now and then a wrong one. */
export function randomAddress(random: () => number): string {
  const below = (end: number): number => Math.floor(random() * end);
  const ipv4 = (): string => Array.from({ length: 4 }, () => below(256)).join('.');
  const kind = below(8);
  if (kind < 3) return ipv4();
  const groups = Array.from({ length: 8 }, () => (below(2) === 0 ? '0' : below(0x1_0000).toString(16)));
  const text = groups.join(':');
  if (kind < 5) return text;
  if (kind === 5) return `${below(2) === 0 ? '::ffff:' : `${groups.slice(0, 3).join(':')}::`}${ipv4()}`;
  const from = below(7);
  if (kind === 6) return `${groups.slice(0, from).join(':')}::${groups.slice(from + 2).join(':')}`.toUpperCase();
  const at = below(text.length);
  return `${text.slice(0, at)}${':.g0%f'[below(6)]}${text.slice(at + below(2))}`;
}

/** Whether an address is in ::/96 or ::ffff:0:0/96, whose last 32 bits Node prints as an IPv4 address, and the library never. */
export function hasIpv4Form(canonical: string): boolean {
  return canonical.startsWith('::ffff:') || /^::[0-9a-f]+(:[0-9a-f]+)?$/.test(canonical);
}
