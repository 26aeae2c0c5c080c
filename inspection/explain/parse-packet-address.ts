import { canonicalAddress, isAddress } from '../../dataplane/ip-prefix.ts';
import { POD_GATEWAY_IPV4, POD_GATEWAY_IPV6 } from '../../dataplane/numbers.ts';
import { UserError } from '../../runtime/user-error.ts';
import { prefixContains } from '../node/prefix-contains.ts';

/** Prefixes whose addresses are never source or destination of a routed packet, and why not. */
const UNROUTED: readonly (readonly [prefix: string, why: string])[] = [
  ['0.0.0.0/32', 'stands for no address'],
  ['::/128', 'stands for no address'],
  ['127.0.0.0/8', 'is the loopback of each namespace: its packets never leave the Pod, or the node'],
  ['::1/128', 'is the loopback of each namespace: its packets never leave the Pod, or the node'],
  [`${POD_GATEWAY_IPV4}/32`, 'is the gateway in the routes of Pods; no interface has it'],
  [`${POD_GATEWAY_IPV6}/128`, 'is the gateway in the routes of Pods; no interface has it'],
  ['224.0.0.0/4', 'is a multicast group: the node routes none'],
  ['ff00::/8', 'is a multicast group: the node routes none'],
  ['255.255.255.255/32', 'is the broadcast address: such packets stay on their link'],
  ['fe80::/10', 'is good on one link only: its packets are not routed'],
];

/** Most characters of a wrong address in an error. */
const SHOWN_CHARS = 80;

/**
 * Returns an address in the form that the kernel prints.
 * @param role the option that the address belongs to, or '' for the subject
 * @throws UserError USAGE when it is not an address, or when no packets are routed to it
 */
export function parsePacketAddress(role: string, text: string): string {
  const start = JSON.stringify(text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text);
  const shown = role === '' ? start : `${role} ${start}`;
  if (!isAddress(text))
    throw new UserError('USAGE', `${shown} is no IP address`, hintFor(role, text.slice(0, SHOWN_CHARS)));
  const address = canonicalAddress(text);
  if (prefixContains('::ffff:0:0/96', address)) {
    throw new UserError('USAGE', `${shown} is an IPv4 address written as IPv6`, 'say the IPv4 address');
  }
  const unrouted = UNROUTED.find(([prefix]) => prefixContains(prefix, address));
  if (unrouted === undefined) return address;
  throw new UserError('USAGE', `${shown} ${unrouted[1]}`, 'name the address of a Pod, a node, or a host outside');
}

/** Reports whether a word that names no Pod was meant as an address. */
export function looksLikeAddress(text: string): boolean {
  return /^[\d.]+(\/\d+)?$/.test(text) || /^[\da-f.:]*:[\da-f.:]*([%/].*)?$/i.test(text);
}

function hintFor(role: string, text: string): string {
  if (text.includes('%')) return 'leave out the zone: link-local addresses are not routed';
  if (text.includes('/')) return 'say one address, without prefix length';
  return `say an address, as in ${role === '' ? 'tke-eni explain' : role} 10.0.1.5`;
}
