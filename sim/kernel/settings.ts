import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import { NETCONFA_IFINDEX_ALL, NETCONFA_IFINDEX_DEFAULT } from '../../netlink/uapi/netconf.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import type { Sysctl } from '../../sysctl/sysctl.ts';
import { SysctlError } from '../../sysctl/sysctl-error.ts';
import { type SysctlKey, sysctlName } from '../../sysctl/sysctl-key.ts';
import { addLinkLocal, begin6, end6 } from './addresses.ts';
import { hasCarrier } from './carrier.ts';
import { type Conf, emit, type Family, type Link, linkNamed, linksOf, type Netns } from './netns.ts';

/** What a new namespace has below `net/ipv4/conf` and `net/ipv6/conf`, of what the product sets or reads. */
const DEFAULTS = {
  4: {
    ...{ forwarding: '0', rp_filter: '0', src_valid_mark: '0', accept_redirects: '1', send_redirects: '1' },
    ...{ arp_ignore: '0', arp_announce: '0', arp_filter: '0', proxy_arp: '0', accept_local: '0', route_localnet: '0' },
  },
  6: {
    ...{ forwarding: '0', disable_ipv6: '0', accept_ra: '1', accept_redirects: '1' },
    ...{ accept_dad: '1', dad_transmits: '1', addr_gen_mode: '0' },
  },
} as const;

/** Makes the settings of `all` or `default` of a new namespace. */
export function makeConf(scope: 'all' | 'default'): Conf {
  const conf: Conf = {
    ...{ 4: new Map(Object.entries(DEFAULTS[4])), 6: new Map(Object.entries(DEFAULTS[6])) },
    written: new Set(),
  };
  // Detection is on where either is; the kernel leaves it to the links.
  if (scope === 'all') conf[6].set('accept_dad', '0');
  return conf;
}

/** Makes the settings of no link of a new namespace. */
export function makeSettings(): Map<string, string> {
  return new Map([['net/netfilter/nf_conntrack_tcp_be_liberal', '0']]);
}

/** Opens the settings of a namespace. */
export function openModelSysctl(netns: Netns): Sysctl {
  const find = (key: SysctlKey): string | undefined => placeOf(netns, key)?.values.get(placeOf(netns, key)?.name ?? '');
  const get = (key: SysctlKey): string => {
    const value = find(key);
    if (value !== undefined) return value;
    const what = `sysctl ${sysctlName(key)}: cannot read: no such key; the interface is gone or the kernel lacks it`;
    throw new SysctlError('NO_SUCH_KEY', pathOf(key), what);
  };
  const set = (key: SysctlKey, value: string): 'changed' | 'unchanged' => {
    const wanted = value.trim();
    const before = get(key);
    if (before === wanted) return 'unchanged';
    if (!/^-?\d+$/.test(wanted)) {
      const what = `sysctl ${sysctlName(key)}: cannot set to ${wanted}: the kernel refuses the value (EINVAL)`;
      throw new SysctlError('REFUSED', pathOf(key), what);
    }
    const place = placeOf(netns, key);
    if (place !== undefined) write(netns, place, wanted);
    return 'changed';
  };
  return {
    get,
    find,
    set,
    setAll: (pairs) =>
      pairs.map(({ key, value, isOptional }) =>
        isOptional === true && find(key) === undefined ? 'unchanged' : set(key, value),
      ),
  };
}

/** Where a setting is: whose it is, of which family, and the name of its file. */
type Place = {
  readonly values: Map<string, string>;
  readonly name: string;
  readonly of: Link | 'all' | 'default' | 'none';
  readonly family: Family;
};

function placeOf(netns: Netns, { path }: SysctlKey): Place | undefined {
  const [net, ip, conf, scope = '', name = ''] = path;
  // One setting under two names.
  if (path.join('/') === 'net/ipv4/ip_forward')
    return { values: netns.all[4], name: 'forwarding', of: 'all', family: 4 };
  if (net !== 'net' || conf !== 'conf' || (ip !== 'ipv4' && ip !== 'ipv6') || path.length !== 5)
    return { values: netns.settings, name: path.join('/'), of: 'none', family: 4 };
  const family = ip === 'ipv4' ? 4 : 6;
  const of = scope === 'all' || scope === 'default' ? scope : linkNamed(netns, scope);
  if (of === undefined) return undefined;
  const values = of === 'all' ? netns.all[family] : of === 'default' ? netns.default[family] : of.conf[family];
  return { values, name, of, family };
}

function write(netns: Netns, place: Place, value: string): void {
  const { values, name, of, family } = place;
  if (name === 'disable_ipv6' && of !== 'none') followDisabling(netns, of, value);
  values.set(name, value);
  if (of === 'none') return;
  if (family === 4 && name !== 'forwarding') followDefault(netns, of, name, value);
  if (name === 'forwarding') followForwarding(netns, place, value);
  else if (name === 'rp_filter' && family === 4) notify(netns, 4, of, { rpFilter: Number(value) });
  else if (name === 'proxy_arp') notify(netns, 4, of, { proxyNeigh: Number(value) });
  else if (name === 'addr_gen_mode' && of !== 'all' && of !== 'default' && value === '0') addLinkLocal(of);
}

/** A setting of IPv4 that was never written follows that of the links to come. */
function followDefault(netns: Netns, of: Link | 'all' | 'default', name: string, value: string): void {
  if (of === 'all') return;
  (of === 'default' ? netns.default : of.conf).written.add(name);
  if (of !== 'default') return;
  for (const { conf } of linksOf(netns)) if (!conf.written.has(name)) conf[4].set(name, value);
}

/** What is set for all is set for each link and for those to come; the kernel tells each. */
function followForwarding(netns: Netns, { of, family }: Place, value: string): void {
  const told = { forwarding: Number(value) };
  if (of !== 'all') {
    if (of !== 'none') notify(netns, family, of, told);
    return;
  }
  // A router accepts no redirects.
  if (family === 4) netns.all[4].set('accept_redirects', value === '0' ? '1' : '0');
  const hadDefault = netns.default[family].get('forwarding') === value;
  netns.default[family].set('forwarding', value);
  if (family === 4) notify(netns, family, 'all', told);
  if (family === 4 || !hadDefault) notify(netns, family, 'default', told);
  for (const link of linksOf(netns)) {
    const hadIt = link.conf[family].get('forwarding') === value;
    link.conf[family].set('forwarding', value);
    if (family === 4 || !hadIt) notify(netns, family, link, told);
  }
  if (family === 6) notify(netns, family, 'all', told);
}

function followDisabling(netns: Netns, of: Link | 'all' | 'default', value: string): void {
  if (of === 'default') return;
  if (of === 'all') netns.default[6].set('disable_ipv6', value);
  for (const link of of === 'all' ? linksOf(netns) : [of]) {
    const before = link.conf[6].get('disable_ipv6');
    link.conf[6].set('disable_ipv6', value);
    if ((before === '0') === (value === '0')) continue;
    if (value === '0' && (link.flags & IFF_UP) !== 0 && hasCarrier(link)) begin6(link);
    if (value !== '0') end6(link);
  }
}

function notify(
  netns: Netns,
  family: Family,
  of: Link | 'all' | 'default',
  told: { readonly forwarding?: number; readonly rpFilter?: number; readonly proxyNeigh?: number },
): void {
  const ifindex = of === 'all' ? NETCONFA_IFINDEX_ALL : of === 'default' ? NETCONFA_IFINDEX_DEFAULT : of.ifindex;
  const message = { family: family === 4 ? AF_INET : AF_INET6, ifindex, ...told, unknown: [] };
  emit(netns, { kind: 'netconf', op: 'new', message, portid: 0 });
}

function pathOf({ path }: SysctlKey): string {
  return `/proc/sys/${path.join('/')}`;
}
