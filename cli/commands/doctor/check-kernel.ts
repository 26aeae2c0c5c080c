import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { sysctlId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { findBridgeFilterFault } from '../../../inspection/faults/find-bridge-filter-fault.ts';
import { isOurRule } from '../../../inspection/node/build-owner-index.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import type { NeighTableFacts } from '../../../inspection/node/read-kernel.ts';
import { type Check, done, skipped, whenKnown } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';

/** Oldest tested kernel: major and minor version. */
const OLDEST = [5, 4] as const;

/** Checks that the kernel has the features that the agent uses. */
export const KERNEL_CHECK: Check = {
  id: 'kernel',
  scope: 'the kernel is new enough and has nf_tables and rule protocols',
  finds: ['kernel-features', 'kernel-unreadable'],
  evaluate: ({ node, kernel }) =>
    whenKnown(kernel, ({ release }) => {
      const agent = ifKnown(node.agent);
      const journal = agent?.journal;
      const isWithoutNft = agent !== undefined && ifKnown(agent.node)?.node.nftables === false;
      const lacks = [
        ...(isOlder(release) ? [`it is ${release}; ${OLDEST.join('.')} is the oldest that is tested`] : []),
        ...(node.host.rules.some((rule) => isOurRule(rule) && rule.protocol === undefined)
          ? ['it stores no protocol with rules (4.17 does): rules of other programs cannot be distinguished from ours']
          : []),
        ...(node.host.nft.kind === 'unknown' && /not supported|ENOPROTOOPT|Protocol/i.test(node.host.nft.why)
          ? [`it has no nf_tables: ${node.host.nft.why}`]
          : []),
        ...(isWithoutNft
          ? ['the agent found no nftables: IPv6 sources are not checked, answers of NodePorts are not led back']
          : []),
      ];
      const fix = ['modprobe nf_tables', 'update the node’s image'];
      const notes = [`${release}${journal?.ruleMode === undefined ? '' : `, rule mode ${journal.ruleMode}`}`];
      const shown = ['ip -d link; ip rule; ip route show table all'];
      return done(
        [
          ...lacks.map((what) => finding('kernel-features', { what: `the kernel: ${what}`, fix, subjects: [] })),
          ...(node.host.unreadable ?? []).map((what) =>
            finding('kernel-unreadable', { what: `passed over: ${what}`, fix: shown, subjects: [] }),
          ),
        ],
        notes,
      );
    }),
};

function isOlder(release: string): boolean {
  const [major = 0, minor = 0] = release.split(/[.-]/).map(Number);
  return major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
}

const WARN_AT = 0.8;
const ERROR_AT = 0.95;

/** Checks how full the connection tracking table is, and whether it was full since boot. */
export const CONNTRACK_CHECK: Check = {
  id: 'conntrack',
  scope: 'connection tracking has room and has not dropped',
  finds: ['conntrack-pressure'],
  evaluate: ({ kernel }) =>
    whenKnown(kernel, ({ conntrack }) => {
      if (conntrack === undefined) return skipped('the kernel has no connection tracking here');
      const { count, max, drop, earlyDrop, insertFailed } = conntrack;
      const share = max === 0 ? 0 : count / max;
      const fill = `${count} of ${max} connections (${Math.round(share * 100)} %)`;
      const name = 'net.netfilter.nf_conntrack_max';
      const common = { fix: [`sysctl -w ${name}=${max * 2}`, 'conntrack -S'], subjects: [sysctlId(name)] };
      if (share >= WARN_AT) {
        const severity = share >= ERROR_AT ? 'error' : 'warning';
        return done([finding('conntrack-pressure', { what: `the table has ${fill}`, severity, ...common })]);
      }
      const lost = drop + earlyDrop;
      const findings =
        lost === 0
          ? []
          : [
              finding('conntrack-pressure', {
                what: `the table was full since boot: ${drop} packets dropped, ${earlyDrop} connections cut short; now ${fill}`,
                severity: 'info',
                ...common,
              }),
            ];
      return done(findings, [`${fill}, ${insertFailed} inserts failed since boot`]);
    }),
};

/** Checks how full the neighbour tables are. */
export const NEIGH_CHECK: Check = {
  id: 'neighbours',
  scope: 'the neighbour tables have room',
  finds: ['neigh-pressure'],
  evaluate: ({ node, kernel }) =>
    whenKnown(kernel, ({ neigh }) => {
      const found = [pressure(node, 4, neigh.ipv4), pressure(node, 6, neigh.ipv6)];
      if (found.every((each) => each === undefined)) {
        return skipped('gc_thresh3 can be read in the host’s first namespace only');
      }
      return done(
        found.flatMap((each) => each?.findings ?? []),
        found.flatMap((each) => each?.note ?? []),
      );
    }),
};

function pressure(
  { host }: NodeFacts,
  family: 4 | 6,
  table: NeighTableFacts | undefined,
): { readonly findings: readonly Finding[]; readonly note: string } | undefined {
  const name = `net.ipv${family}.neigh.default.gc_thresh3`;
  const limit = Number(host.sysctls.get(name) ?? Number.NaN);
  if (table === undefined || Number.isNaN(limit)) return undefined;
  const note = `IPv${family}: ${table.entries} of ${limit}`;
  // The count includes permanent entries, of which each Pod has one, but the limit does not apply to them. So only a
  // refused entry proves that the table was full.
  if (table.tableFulls === 0) return { findings: [], note };
  const severity = table.entries >= limit * WARN_AT ? 'warning' : 'info';
  const what = `the IPv${family} neighbour table refused ${table.tableFulls} entries since boot; it has ${table.entries} of ${limit}`;
  const fix = [`sysctl -w ${name}=${limit * 4}`];
  return { findings: [finding('neigh-pressure', { what, severity, fix, subjects: [sysctlId(name)] })], note };
}

/** Checks that agent, kubelet and runtime can still watch files. */
export const INOTIFY_CHECK: Check = {
  id: 'inotify',
  scope: 'root has inotify instances left',
  finds: ['inotify-limits'],
  evaluate: ({ inotify }) =>
    whenKnown(inotify, ({ used, max }) => {
      if (used < max * WARN_AT) return done([], [`${used} of ${max}`]);
      const name = 'fs.inotify.max_user_instances';
      const what = `root’s processes use ${used} of ${max} inotify instances`;
      return done([finding('inotify-limits', { what, fix: [`sysctl -w ${name}=8192`], subjects: [sysctlId(name)] })]);
    }),
};

/** Bridges of container engines and hypervisors that run beside Kubernetes; they need no Services. */
const NOT_OF_PODS = /^(docker|br-[0-9a-f]{12}$|virbr|lxcbr|lxdbr|incusbr|podman|nerdctl)/;

/** Checks that packets between Pods of a bridge pass iptables, where a bridge has Pods. */
export const BRIDGE_CHECK: Check = {
  id: 'br-netfilter',
  scope: 'packets between Pods of a bridge pass iptables',
  finds: ['br-netfilter'],
  evaluate: ({ model, node, kernel, assessed }: DoctorFacts) => {
    const bridge = node.host.links.find(
      ({ kind, ifindex, ifname }) =>
        kind === 'bridge' &&
        !NOT_OF_PODS.test(ifname) &&
        node.host.links.some((link) => link.kind === 'veth' && link.master === ifindex),
    );
    if (bridge === undefined) return skipped('no bridge here has Pods');
    if (model.pods.length === 0 && kernel.kind === 'unknown') return skipped(kernel.why);
    // Where the bridge is that of GlobalRoute Pods the setting is compared with the plan.
    if (assessed.some(({ id }) => id === 'br-netfilter')) return done([]);
    const found = findBridgeFilterFault(node.host, bridge.ifname);
    return found === undefined ? done([], [`packets between ports of ${bridge.ifname} pass iptables`]) : done([found]);
  },
};
