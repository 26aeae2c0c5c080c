import { AF_INET6 } from './uapi/netlink.ts';
import {
  RT_SCOPE_HOST,
  RT_SCOPE_LINK,
  RT_SCOPE_NOWHERE,
  RT_SCOPE_UNIVERSE,
  RT_TABLE_DEFAULT,
  RT_TABLE_LOCAL,
  RT_TABLE_MAIN,
  RTPROT_BOOT,
  RTPROT_DHCP,
  RTPROT_KERNEL,
  RTPROT_RA,
  RTPROT_REDIRECT,
  RTPROT_STATIC,
} from './uapi/rtnetlink.ts';

/** Returns the name of the interface with an index. */
export type NameOf = (ifindex: number) => string;

/** Word of an `ip` line; undefined for one that is omitted. */
export type Argument = string | number | undefined;

/** Joins the words that are not omitted. */
export function line(...args: readonly (Argument | readonly Argument[])[]): string {
  return args
    .flat()
    .filter((arg) => arg !== undefined && arg !== '')
    .join(' ');
}

/** Renders `value` after its keyword, or nothing when there is no value. */
export function pair(name: string, value: Argument): readonly Argument[] {
  return value === undefined ? [] : [name, value];
}

/** Renders the name of `value` in `names`, or the number itself. */
export function named(names: Readonly<Record<number, string>>, value: number | undefined): Argument {
  return value === undefined ? undefined : (names[value] ?? value);
}

/** Renders `ip`, with the family when no address shows it. */
export function ip(family: number | undefined, ...addresses: readonly (string | undefined)[]): string {
  const isIpv6 = family === AF_INET6 || addresses.some((address) => address?.includes(':'));
  return isIpv6 ? 'ip -6' : 'ip';
}

/** Names of routing tables. */
export const TABLES = { [RT_TABLE_MAIN]: 'main', [RT_TABLE_LOCAL]: 'local', [RT_TABLE_DEFAULT]: 'default' };
/** Names of routing protocols. */
export const PROTOCOLS = {
  [RTPROT_REDIRECT]: 'redirect',
  [RTPROT_KERNEL]: 'kernel',
  [RTPROT_BOOT]: 'boot',
  [RTPROT_STATIC]: 'static',
  [RTPROT_RA]: 'ra',
  [RTPROT_DHCP]: 'dhcp',
};
/** Names of scopes. */
export const SCOPES = {
  [RT_SCOPE_UNIVERSE]: 'global',
  [RT_SCOPE_LINK]: 'link',
  [RT_SCOPE_HOST]: 'host',
  [RT_SCOPE_NOWHERE]: 'nowhere',
};

/** Renders the verb in the spelling of `ip`. */
export function verbKeyword(verb: 'add' | 'replace' | 'delete'): string {
  return verb === 'delete' ? 'del' : verb;
}

/** Renders a mark as `ip` shows it. */
export function hex(value: number): string {
  return `0x${value.toString(16)}`;
}
