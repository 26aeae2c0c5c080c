import { encodeByteText } from '../runtime/byte-text.ts';
import { SysctlError } from './sysctl-error.ts';

/**
 * One kernel setting by its path below /proc/sys. Each element is one directory or file name; dots in it are part of
 * the name.
 */
export type SysctlKey = { readonly path: readonly string[] };

/** An interface name, or `all` or `default` of /proc/sys/net/ipv{4,6}/conf. */
export type ConfScope = string;

/** IFNAMSIZ - 1: the longest interface name. */
const IFNAME_MAX_BYTES = 15;
/** The white space of ASCII, not that of Unicode. @see linux/net/core/dev.c dev_valid_name() */
// biome-ignore lint/suspicious/noControlCharactersInRegex: tabs and line breaks are among them.
const NOT_IN_A_NAME = /[\u0000\t-\r /:]/;

/**
 * Validates the elements and returns the key.
 * @throws SysctlError INVALID_NAME for an element that is empty, `.`, `..` or contains a slash: it would name another
 * file.
 */
export function sysctlKey(...path: readonly string[]): SysctlKey {
  const bad = path.find((element) => element === '' || element === '.' || element === '..' || element.includes('/'));
  if (bad !== undefined || path.length === 0) {
    const shown = path.join('/');
    throw new SysctlError(
      'INVALID_NAME',
      shown,
      `"${shown}" is no sysctl: "${bad ?? ''}" cannot be one element of its path`,
    );
  }
  return { path };
}

/**
 * Renders the key the way sysctl(8) takes it: dots between elements, and a slash for a dot that belongs to a name
 * (`net.ipv4.conf.eth0/100.rp_filter` is VLAN interface eth0.100).
 * @see sysctl.d(5)
 */
export function sysctlName(key: SysctlKey): string {
  return key.path.map((element) => element.replaceAll('.', '/')).join('.');
}

/**
 * Parses a name as sysctl(8) does: the first separator, dot or slash, separates; the other one is part of names.
 * @throws SysctlError INVALID_NAME when an element is empty.
 */
export function parseSysctlName(name: string): SysctlKey {
  const slash = name.indexOf('/');
  const dot = name.indexOf('.');
  const slashSeparates = slash >= 0 && (dot < 0 || slash < dot);
  if (slashSeparates) return sysctlKey(...name.split('/'));
  return sysctlKey(...name.split('.').map((element) => element.replaceAll('/', '.')));
}

/** Whether IPv4 packets are forwarded between interfaces. @see kernel ip-sysctl ip_forward */
export const ipForward = (): SysctlKey => sysctlKey('net', 'ipv4', 'ip_forward');

/**
 * Whether this interface (or `all`) forwards. For IPv6 `all` = 1 also turns off the acceptance of RAs where accept_ra
 * is 1.
 */
export const forwarding = (family: 4 | 6, scope: ConfScope): SysctlKey => conf(family, scope, 'forwarding');

/** Whether connection tracking accepts TCP segments outside of the window that it knows. @see kernel nf_conntrack-sysctl */
export const tcpBeLiberal = (): SysctlKey => sysctlKey('net', 'netfilter', 'nf_conntrack_tcp_be_liberal');

/** Source validation: 0 off, 1 strict, 2 loose; the effective value is the larger of `all` and the interface. */
export const rpFilter = (scope: ConfScope): SysctlKey => conf(4, scope, 'rp_filter');

/** Whether the mark of a packet takes part in source validation. */
export const srcValidMark = (scope: ConfScope): SysctlKey => conf(4, scope, 'src_valid_mark');

/** Which local addresses an ARP request is answered for. */
export const arpIgnore = (scope: ConfScope): SysctlKey => conf(4, scope, 'arp_ignore');

/** Which local address an ARP request announces. */
export const arpAnnounce = (scope: ConfScope): SysctlKey => conf(4, scope, 'arp_announce');

/** Whether an ARP request is answered only on the interface the answer would leave by. */
export const arpFilter = (scope: ConfScope): SysctlKey => conf(4, scope, 'arp_filter');

/** Whether ARP requests for others' addresses are answered. */
export const proxyArp = (scope: ConfScope): SysctlKey => conf(4, scope, 'proxy_arp');

/** Whether ICMP redirects are sent; the effective value is `all` OR the interface. */
export const sendRedirects = (scope: ConfScope): SysctlKey => conf(4, scope, 'send_redirects');

/** Whether ICMP redirects are accepted. */
export const acceptRedirects = (family: 4 | 6, scope: ConfScope): SysctlKey => conf(family, scope, 'accept_redirects');

/** Whether the interface has no IPv6 at all. Setting it to 1 deletes the IPv6 addresses of the interface. */
export const disableIpv6 = (scope: ConfScope): SysctlKey => conf(6, scope, 'disable_ipv6');

/** Router advertisements: 0 ignored, 1 accepted unless forwarding, 2 accepted even when forwarding. */
export const acceptRa = (scope: ConfScope): SysctlKey => conf(6, scope, 'accept_ra');

/** Duplicate address detection: 0 off; an address is usable at once. */
export const acceptDad = (scope: ConfScope): SysctlKey => conf(6, scope, 'accept_dad');

/** How many neighbour solicitations duplicate address detection sends. */
export const dadTransmits = (scope: ConfScope): SysctlKey => conf(6, scope, 'dad_transmits');

/** How IPv6 link-local addresses are made: 0 EUI-64, 1 none, 2 stable privacy, 3 random. */
export const addrGenMode = (scope: ConfScope): SysctlKey => conf(6, scope, 'addr_gen_mode');

/** Whether IPv4 packets that pass a bridge pass netfilter; the module br_netfilter has it. */
export const bridgeCallIptables = (): SysctlKey => sysctlKey('net', 'bridge', 'bridge-nf-call-iptables');

function conf(family: 4 | 6, scope: ConfScope, name: string): SysctlKey {
  if (encodeByteText(scope).length > IFNAME_MAX_BYTES || NOT_IN_A_NAME.test(scope)) {
    throw new SysctlError(
      'INVALID_NAME',
      scope,
      `"${scope}" is no interface name: at most 15 bytes, no white space, slash or colon`,
    );
  }
  return sysctlKey('net', `ipv${family}`, 'conf', scope, name);
}
