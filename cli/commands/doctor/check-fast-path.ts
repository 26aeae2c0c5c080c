import { flowFilterOf } from '../../../dataplane/fast-path/flow-filter.ts';
import { isHostVethName } from '../../../dataplane/host-veth-name.ts';
import { FLOWTABLE_TABLE } from '../../../dataplane/numbers.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { findPacketRules } from '../../../inspection/firewall/find-packet-rules.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { HostFacts } from '../../../inspection/node/node-facts.ts';
import { filterEffect } from '../../../netlink/traffic-filter-message.ts';
import { recordOf } from '../../../runtime/json.ts';
import { type Check, done, whenKnown } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';

/** Checks that the fast path is as the agent was asked for it, and that nothing stands in its way. */
export const FAST_PATH_CHECK: Check = {
  id: 'fast-path',
  scope: 'the fast path is as asked for, its setting holds, no rule judges each packet; off, nothing of it is left',
  finds: ['fast-path', 'fast-path-rules'],
  evaluate: ({ node, status, iptables }) =>
    whenKnown(status, ({ fastPath }) => {
      const { wanted, mode, why } = fastPath ?? OFF;
      const links = linksWithOurs(node.host);
      const devices = flowtableDevices(node.host);
      if (mode === 'flowtable') {
        const faults = [...faultsWhileOn(node.host, iptables, 'no packet'), ...(devices === 0 ? [noFlowtable()] : [])];
        return done(faults, [devices === undefined ? mode : `${mode}, on ${devices} links`]);
      }
      if (mode !== 'off') {
        const shaped = shapedLinks(node.host);
        const left = shaped === 0 ? '' : `; ${shaped} ${shaped === 1 ? 'is' : 'are'} left to the bandwidth plugin`;
        return done(faultsWhileOn(node.host, iptables, 'one packet a second'), [`${mode}, on ${links} links${left}`]);
      }
      const leftovers = [
        ...(links === 0 ? [] : [left(links)]),
        ...(devices === undefined || devices === 0 ? [] : [leftTable()]),
      ];
      return done([...(why === '' ? [] : [staysOff(wanted, why)]), ...leftovers], ['off']);
    }),
};

/** What an agent is without an answer about it. */
const OFF = { wanted: 'off', mode: 'off', why: '' };

function staysOff(wanted: string, why: string): Finding {
  return finding('fast-path', {
    what: `the fast path is asked for (--fast-path=${wanted}) and stays off: ${why}`,
    fix: ['tke-eni status'],
    subjects: [],
  });
}

function left(links: number): Finding {
  return finding('fast-path', {
    what: `the fast path is off, and ${links} links have a filter of it`,
    isOurs: true,
    fix: ['tke-eni repair'],
    subjects: [],
  });
}

function leftTable(): Finding {
  return finding('fast-path', {
    what: `the fast path is off, and nftables table inet ${FLOWTABLE_TABLE} is left of it: flows go on by it`,
    isOurs: true,
    fix: ['tke-eni repair'],
    subjects: [],
  });
}

function noFlowtable(): Finding {
  return finding('fast-path', {
    what: `the fast path is a flowtable, and nftables table inet ${FLOWTABLE_TABLE} has none with links`,
    isOurs: true,
    fix: ['tke-eni repair'],
    subjects: [],
  });
}

/** @param seen how much rules see of a learned flow */
function faultsWhileOn(host: HostFacts, iptables: DoctorFacts['iptables'], seen: string): readonly Finding[] {
  return [...settingFault(host), ...ruleFault(host, iptables, seen)];
}

/** Most chains that are named. */
const MAX_NAMED = 5;

function ruleFault({ nft }: HostFacts, iptables: DoctorFacts['iptables'], seen: string): readonly Finding[] {
  const found = findPacketRules({ objects: ifKnown(nft)?.objects ?? [], iptables });
  if (found.length === 0) return [];
  const named = found.slice(0, MAX_NAMED);
  const names = named.map(({ name, kinds }) => `${name} (${kinds.join(', ')})`).join('; ');
  const more = found.length > named.length ? `; and ${found.length - named.length} more` : '';
  return [
    finding('fast-path-rules', {
      what: `the fast path is on, and rules that judge each packet by itself see ${seen} of a learned flow: ${names}${more}`,
      fix: named.map(({ show }) => show),
      subjects: [],
    }),
  ];
}

/** Connection tracking does not see all packets of a learned flow: without the setting it takes the next ones for invalid. */
function settingFault({ sysctls }: HostFacts): readonly Finding[] {
  const name = 'net.netfilter.nf_conntrack_tcp_be_liberal';
  const value = sysctls.get(name);
  if (value === undefined || value === '1') return [];
  return [
    finding('fast-path', {
      severity: 'error',
      isOurs: true,
      what: `${name} is ${value} while the fast path is on: TCP connections of Pods stall`,
      fix: ['tke-eni repair', `sysctl -w ${name}=1`],
      subjects: [],
    }),
  ];
}

/** Counts the links of our flowtable: 0 where there is none; undefined while nftables is not known. */
function flowtableDevices({ nft }: HostFacts): number | undefined {
  if (nft.kind === 'unknown') return undefined;
  const found = nft.value.objects
    .map((object) => recordOf(object['flowtable']))
    .find(({ family, table }) => family === 'inet' && table === FLOWTABLE_TABLE);
  // One device is a text, several are a list.
  const devices = found?.['dev'] ?? [];
  return Array.isArray(devices) ? devices.length : 1;
}

function linksWithOurs({ traffic }: HostFacts): number {
  const ours = (ifKnown(traffic.filters) ?? []).flatMap((filter) => flowFilterOf(filter) ?? []);
  return new Set(ours.map(({ ifindex }) => ifindex)).size;
}

/** Counts the links of Pods whose packets a filter sends to an ifb link, as the bandwidth plugin has them. */
function shapedLinks({ links, traffic }: HostFacts): number {
  const ifbs = new Set(links.filter(({ kind }) => kind === 'ifb').map(({ ifindex }) => ifindex));
  const pods = new Set(links.filter(({ ifname }) => isHostVethName(ifname)).map(({ ifindex }) => ifindex));
  const shaped = (ifKnown(traffic.filters) ?? []).filter(
    (filter) =>
      pods.has(filter.ifindex) &&
      filterEffect(filter).actions.some(({ mirred }) => mirred !== undefined && ifbs.has(mirred.ifindex)),
  );
  return new Set(shaped.map(({ ifindex }) => ifindex)).size;
}
