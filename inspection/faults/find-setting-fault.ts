import { finding } from '../catalogue/catalogue.ts';
import { sysctlId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { NetnsFacts } from '../node/node-facts.ts';

type Settings = Pick<NetnsFacts, 'sysctls'>;

/** Finds settings of a link of the node with which the kernel finds no neighbour there. */
export function findSolicitFault({ sysctls }: Settings, ifname: string, family: 4 | 6): Finding | undefined {
  const conf = `net.ipv${family}.neigh.${nameOf(ifname)}`;
  const probes = ['mcast_solicit', 'app_solicit'].map((name) => sysctls.get(`${conf}.${name}`));
  if (probes.some((value) => value === undefined || value !== '0')) return undefined;
  const name = `${conf}.mcast_solicit`;
  return settingFault(name, '0', '3', `the node never asks who has an address on ${ifname}`);
}

/** A Pod's namespace, as messages and commands name it. */
type Inside = { readonly title: string; readonly ifName: string; readonly prefix: string };

/** Finds settings inside a Pod that stop its packets. */
export function findInsideFaults(
  { sysctls }: Settings,
  { title, ifName, prefix }: Inside,
  family: 4 | 6,
): readonly Finding[] {
  const number = (name: string): number => Number(sysctls.get(name) ?? Number.NaN);
  const link = nameOf(ifName);
  const hops = family === 4 ? 'net.ipv4.ip_default_ttl' : `net.ipv6.conf.${link}.hop_limit`;
  const found: Finding[] = [];
  if (number(hops) <= 1) {
    found.push(settingFault(hops, String(number(hops)), '64', `packets of ${title} end at the node`, prefix));
  }
  if (family === 6) return found;
  // The larger of both counts.
  const ignore = (['all', link] as const).map((scope) => `net.ipv4.conf.${scope}.arp_ignore`);
  const silent = ignore.find((name) => SILENT.includes(number(name)));
  if (silent !== undefined && SILENT.includes(Math.max(...ignore.map((name) => number(name))))) {
    const what = `${title} does not answer when the node asks for its address`;
    found.push(settingFault(silent, String(number(silent)), '0', what, prefix));
  }
  return found;
}

/** Values of arp_ignore with which an address of scope global is not answered for to everybody. @see ip-sysctl */
const SILENT: readonly number[] = [2, 8];

function settingFault(name: string, value: string, wanted: string, effect: string, prefix = ''): Finding {
  return finding('setting-stops-packets', {
    what: `${name} is ${value}: ${effect}`,
    fix: [`${prefix}sysctl -w ${name}=${wanted}`],
    subjects: prefix === '' ? [sysctlId(name)] : [],
  });
}

/** An interface name within the dotted name of a setting. */
function nameOf(ifname: string): string {
  return ifname.replaceAll('.', '/');
}

const MAX = 'net.netfilter.nf_conntrack_max';

/** Finds that the connection tracking table is full: the first packet of a new connection is dropped. */
export function findFullConntrack({ sysctls }: Pick<NetnsFacts, 'sysctls'>): Finding | undefined {
  const count = Number(sysctls.get('net.netfilter.nf_conntrack_count') ?? Number.NaN);
  const max = Number(sysctls.get(MAX) ?? Number.NaN);
  // 0 is no limit.
  if (!(max > 0 && count >= max)) return undefined;
  return finding('conntrack-pressure', {
    what: `the table is full: ${count} of ${max} connections`,
    fix: [`sysctl -w ${MAX}=${max * 2}`, 'conntrack -S'],
    subjects: [sysctlId(MAX)],
    severity: 'error',
  });
}
