import { openSysctl } from '../../sysctl/sysctl.ts';
import { isSysctlError } from '../../sysctl/sysctl-error.ts';
import { type SysctlKey, sysctlKey, sysctlName } from '../../sysctl/sysctl-key.ts';

/** Settings that stand once in a namespace. */
const GLOBAL: readonly (readonly string[])[] = [
  ['net', 'ipv4', 'ip_forward'],
  ['net', 'ipv4', 'ip_local_port_range'],
  ['net', 'ipv4', 'neigh', 'default', 'gc_thresh1'],
  ['net', 'ipv4', 'neigh', 'default', 'gc_thresh2'],
  ['net', 'ipv4', 'neigh', 'default', 'gc_thresh3'],
  ['net', 'ipv6', 'neigh', 'default', 'gc_thresh3'],
  ['net', 'ipv4', 'tcp_mtu_probing'],
  ['net', 'netfilter', 'nf_conntrack_max'],
  ['net', 'netfilter', 'nf_conntrack_count'],
  ['net', 'netfilter', 'nf_conntrack_buckets'],
  ['net', 'netfilter', 'nf_conntrack_tcp_be_liberal'],
  ['net', 'bridge', 'bridge-nf-call-iptables'],
  ['net', 'bridge', 'bridge-nf-call-ip6tables'],
];

/** Settings of each interface, and of `all` and `default`. */
const PER_INTERFACE = {
  ipv4: [
    'forwarding',
    'rp_filter',
    'src_valid_mark',
    'arp_ignore',
    'arp_announce',
    'arp_filter',
    'proxy_arp',
    'send_redirects',
    'accept_redirects',
    'accept_local',
  ],
  ipv6: ['forwarding', 'disable_ipv6', 'accept_ra', 'accept_dad', 'addr_gen_mode', 'accept_redirects'],
} as const;

/** Reads the settings that matter to us in the namespace of now, by dotted name; one that is not there is left out. */
export function readSysctls(ifnames: readonly string[]): ReadonlyMap<string, string> {
  const sysctl = openSysctl();
  const found = new Map<string, string>();
  for (const key of [...GLOBAL.map((path) => sysctlKey(...path)), ...interfaceKeys(ifnames)]) {
    const value = readable(() => sysctl.find(key));
    if (value !== undefined) found.set(sysctlName(key), value);
  }
  return found;
}

function interfaceKeys(ifnames: readonly string[]): readonly SysctlKey[] {
  return ['all', 'default', ...ifnames].flatMap((scope) =>
    (['ipv4', 'ipv6'] as const).flatMap((family) =>
      PER_INTERFACE[family].map((name) => sysctlKey('net', family, 'conf', scope, name)),
    ),
  );
}

/** Some are root's alone to read, some have no value now (no prefix route yet): as good as missing. */
function readable(read: () => string | undefined): string | undefined {
  try {
    return read();
  } catch (error) {
    if (isSysctlError(error)) return undefined;
    throw error;
  }
}
