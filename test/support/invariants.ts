import { join } from 'node:path';
import type { NetnsView } from '../../sim/support/netns.ts';
import type { AttachedEni } from '../../sim/vpc/nic.ts';
import { expectedBlockRoutes, findBridgeViolations, isOnBridge } from './bridge-violations.ts';
import { type JournalFacts, type LeaseFacts, readJournalFacts } from './journal-facts.ts';
import { type KernelFacts, readKernelFacts } from './kernel-facts.ts';
import { findNftViolations, type NftScope } from './nft-violations.ts';
import { findPodViolations } from './pod-violations.ts';

/** What a node is judged by. */
export type InvariantScope = {
  readonly netns: NetnsView;
  /** The agent's state folder; its journal is `journal.db` in it. */
  readonly stateDir: string;
  readonly ruleMode: 'compact' | 'per-pod';
  /** The ENIs that the VPC has attached to the node and that the supply names. */
  readonly enis: readonly AttachedEni[];
  /** ENIs that Pods get as a whole; default none. */
  readonly directEnis?: readonly AttachedEni[];
  /** What the runtime lists as ready; left out, the runtime is not compared. */
  readonly sandboxes?: readonly { readonly id: string; readonly ips?: readonly string[]; readonly netns?: string }[];
  /** Sandboxes whose ADD or DEL was cut short: they may have a lease or none, and the runtime may list them or not. */
  readonly undecided?: readonly string[];
  /** Default: IPv4, and IPv6 when an ENI has an IPv6 address. */
  readonly families?: readonly (4 | 6)[];
  /** Default 0x00ff0000. */
  readonly eniMarkMask?: number;
  /** Default true: answers of NodePort connections are led back. */
  readonly nodePort?: boolean;
  readonly podCidrs?: readonly string[];
  /** How the agent wires new GlobalRoute Pods; left out, it never had one and makes no bridge. */
  readonly grWiring?: 'bridge' | 'routed';
  /** With `--role=uplinks`: the addresses of each ENI, which have their rules without a lease. */
  readonly uplinkIps?: ReadonlyMap<string, readonly string[]>;
  /** Where a sandbox's netns path leads in the test's mount namespace; default the path itself, '' to look into none. */
  readonly resolveNetns?: (path: string) => string;
};

/**
 * Judges a node at a quiet moment: journal, kernel and runtime agree; every lease is wired as its rule mode says;
 * nothing of ours is left over. Returns every violation as one line of text; empty is good.
 */
export async function findViolations(scope: InvariantScope): Promise<readonly string[]> {
  const journal = readJournalFacts(join(scope.stateDir, 'journal.db'));
  const kernel = await readKernelFacts(scope.netns);
  return [
    ...journal.faults,
    ...journal.leases
      .filter((lease) => lease.state !== 'active')
      .map((lease) => `journal: lease ${lease.key} is ${lease.state} at a quiet moment`),
    ...linkViolations(journal, kernel),
    ...findBridgeViolations(scope, journal, kernel),
    ...sameLines('route', expectedRoutes(scope, journal, kernel), kernel.routes),
    ...sameLines('rule', expectedRules(scope, journal), kernel.rules),
    ...eniViolations(scope, journal, kernel),
    ...directViolations(scope, journal, kernel),
    ...findNftViolations(nftScope(scope, journal), kernel.nft),
    ...runtimeViolations(scope, journal),
    ...(await findPodViolations(scope, journal)),
  ];
}

const MASK = 0x00ff0000;
/** Link group of what is beside whole ENIs. */
const DIRECT_GROUP = 3998;

function linkViolations(journal: JournalFacts, kernel: KernelFacts): readonly string[] {
  const wired = journal.leases.filter(isWired);
  const known = new Set(wired.map(aliasOf));
  const hostVeths = kernel.links.filter(
    (link) => link.alias.startsWith('tke-eni/') || /^eni[0-9a-f]{11}$/.test(link.ifname),
  );
  return [
    ...hostVeths
      .filter((link) => !known.has(link.alias))
      .map((link) => `kernel: link ${link.ifname} (alias '${link.alias}') has no lease`),
    ...wired.flatMap((lease) => leaseLinkViolations(journal, kernel, lease)),
  ];
}

function leaseLinkViolations(journal: JournalFacts, kernel: KernelFacts, lease: LeaseFacts): readonly string[] {
  const links = kernel.links.filter((link) => link.alias === aliasOf(lease));
  const [link] = links;
  if (link === undefined || links.length > 1) return [`lease ${lease.key}: ${links.length} host links, not 1`];
  const { hostVeth } = lease;
  const isPort = isOnBridge(lease);
  const table = groupOf(journal, lease);
  const wanted = [
    ['ifindex', hostVeth?.ifindex, link.ifindex],
    ['name', hostVeth?.name, link.ifname],
    ['MAC', hostVeth?.mac, link.mac],
    ['group', String(table), link.group],
    ['up', true, link.isUp],
    ['ARP', true, link.hasArp],
    ['master', isPort ? 'cbr0' : '', link.master],
    ['hairpin', isPort, link.isHairpin],
    ['kind', 'veth', link.kind],
    // The bridge checks what its ports send.
    ...(isPort ? [] : [['rp_filter', 1, kernel.rpFilter.get(link.ifname)] as const]),
    [
      'IPv4 address',
      undefined,
      kernel.addresses.find((line) => line.startsWith(`${link.ifname} `) && !line.includes(':')),
    ],
    ...(lease.mtu > 0 ? [['MTU', lease.mtu, link.mtu] as const] : []),
  ] as const;
  return wanted
    .filter(([, want, have]) => want !== have)
    .map(([what, want, have]) => `lease ${lease.key}: ${link.ifname} has ${what} ${have}, not ${want}`);
}

function expectedRoutes(scope: InvariantScope, journal: JournalFacts, kernel: KernelFacts): readonly string[] {
  const podTable = scope.ruleMode === 'compact' ? 3999 : 254;
  const routed = journal.leases.filter((lease) => isWired(lease) && !isOnBridge(lease));
  const ofPods = routed.flatMap((lease) => {
    const dev = kernel.links.find((link) => link.alias === aliasOf(lease))?.ifname ?? '(no link)';
    return lease.ips.flatMap((ip) => [
      `${podTable} ${ip} dev ${dev}`,
      // Behind its rule to main: what is left when the link goes.
      ...(podTable === 254 && lease.block === undefined ? [`254 ${ip} unreachable`] : []),
    ]);
  });
  const ofEnis = scope.enis.flatMap((eni) => {
    const table = tableOf(journal, eni.eniId);
    const dev = ifnameOf(kernel, eni);
    // A link-local gateway is on the link by nature and needs no route of its own.
    const toGateway = (gateway: string) => (gateway.startsWith('fe80:') ? [] : [`${table} ${gateway} dev ${dev}`]);
    return [
      ...toGateway(eni.gateway),
      `${table} default via ${eni.gateway} dev ${dev}`,
      ...(eni.primaryIpv6 === undefined || eni.gatewayV6 === undefined
        ? []
        : [...toGateway(eni.gatewayV6), `${table} default6 via ${eni.gatewayV6} dev ${dev}`]),
      ...familiesOf(scope).map((family) => `${table} ${family === 4 ? 'default' : 'default6'} unreachable`),
    ];
  });
  return [...ofPods, ...ofEnis, ...podlessRoutes(scope, journal), ...expectedBlockRoutes(scope, journal)];
}

/** What refuses packets to addresses of the node, whether a Pod has one or not. */
function podlessRoutes(scope: InvariantScope, journal: JournalFacts): readonly string[] {
  if (scope.uplinkIps !== undefined)
    return [...scope.uplinkIps.values()].flatMap((ips) => ips.map((ip) => `254 ${ip} unreachable`));
  const ofOthers = journal.leases.filter(({ hasUplink }) => hasUplink).flatMap(({ ips }) => ips);
  return journal.assigned
    .filter((ip) => familiesOf(scope).includes(familyOf(ip)) && !ofOthers.includes(ip))
    .map((ip) => `4001 ${ip} unreachable`);
}

function expectedRules(scope: InvariantScope, journal: JournalFacts): readonly string[] {
  const mask = scope.eniMarkMask ?? MASK;
  const families = familiesOf(scope);
  const isCompact = scope.ruleMode === 'compact';
  const shared = journal.leases.filter((lease) => !isDirect(lease) && lease.block === undefined);
  const ruled = isCompact ? shared.filter((lease) => !isWired(lease)) : shared;
  const direct = isCompact ? [] : journal.leases.filter(isDirect);
  const isMarked = scope.nodePort !== false || (scope.directEnis ?? []).length > 0;
  return [
    ...(isCompact ? families.map((family) => `${family} 512 from all lookup 3999`) : []),
    ...(scope.podCidrs ?? []).map((cidr) => `${familyOf(cidr)} 1024 from all to ${cidr} lookup 254`),
    ...(isMarked ? families.map((family) => `${family} 1280 from all fwmark 0x80/0x80 lookup 254`) : []),
    ...families.map((family) => `${family} 1280 from all lookup 4001`),
    ...direct.flatMap(({ ips }) => ips.map((ip) => `${familyOf(ip)} 512 from all to ${ip} lookup 254`)),
    ...scope.enis.flatMap((eni) => {
      const { table, slot } = recordOf(journal, eni.eniId);
      const mark = `fwmark ${hex(slot * lowestBit(mask))}/${hex(mask)}`;
      const primaries = [eni.primaryIp, eni.primaryIpv6].filter((ip) => ip !== undefined);
      return [
        ...(isCompact ? families.map((family) => `${family} 1536 from all ${mark} lookup ${table}`) : []),
        ...primaries.map((ip) => `${familyOf(ip)} 1537 from ${ip} lookup ${table}`),
      ];
    }),
    ...ruled.flatMap(({ ips, eniId }) => perPodRules(journal, ips, eniId)),
    ...[...(scope.uplinkIps ?? [])].flatMap(([eniId, ips]) => perPodRules(journal, ips, eniId)),
  ];
}

function perPodRules(journal: JournalFacts, ips: readonly string[], eniId: string): readonly string[] {
  return ips.flatMap((ip) => [
    `${familyOf(ip)} 512 from all to ${ip} lookup 254`,
    `${familyOf(ip)} 1536 from ${ip} lookup ${tableOf(journal, eniId)}`,
  ]);
}

/** One that nobody has lies in the host's namespace, down, without addresses, nobody's; one that a Pod has is not there. */
function directViolations(scope: InvariantScope, journal: JournalFacts, kernel: KernelFacts): readonly string[] {
  return (scope.directEnis ?? []).flatMap((eni) => {
    const links = kernel.links.filter(({ mac }) => mac === eni.mac);
    const where = `kernel: exclusive ENI ${eni.eniId}`;
    const owners = journal.leases.filter(({ eniId }) => eniId === eni.eniId);
    if (owners.length > 1) return [`journal: exclusive ENI ${eni.eniId} has ${owners.length} leases`];
    if (owners.length === 1) return links.map(({ ifname }) => `${where}: leased, and lies in the host as ${ifname}`);
    const [link] = links;
    if (link === undefined || links.length > 1) return [`${where}: ${links.length} links have its MAC, not 1`];
    return [
      ...(link.isUp ? [`${where}: ${link.ifname} is up`] : []),
      ...(link.alias === '' ? [] : [`${where}: ${link.ifname} has the alias ${link.alias}`]),
      // Its name may be another's by the time that it comes back; then it has the predictable one.
      ...(link.ifname.startsWith('eth') || link.ifname === `enx${eni.mac.replaceAll(':', '')}`
        ? []
        : [`${where}: it is called ${link.ifname}`]),
      ...kernel.addresses.filter((line) => line.startsWith(`${link.ifname} `)).map((line) => `${where}: has ${line}`),
      ...[...kernel.routes, ...kernel.rules]
        .filter((line) => line.endsWith(` dev ${link.ifname}`) || line.includes(` ${eni.primaryIp} `))
        .map((line) => `${where}: has ${line}`),
    ];
  });
}

function eniViolations(scope: InvariantScope, journal: JournalFacts, kernel: KernelFacts): readonly string[] {
  return scope.enis.flatMap((eni) => {
    if (!journal.enis.some((record) => record.eniId === eni.eniId)) return [`journal: ENI ${eni.eniId} has no record`];
    const link = kernel.links.find((candidate) => candidate.mac === eni.mac);
    if (link === undefined) return [`kernel: ENI ${eni.eniId} (${eni.mac}) has no link`];
    const primaries = [
      `${link.ifname} ${eni.primaryIp}/32`,
      ...(eni.primaryIpv6 === undefined ? [] : [`${link.ifname} ${eni.primaryIpv6}/128`]),
    ];
    return [
      ...(link.isUp ? [] : [`kernel: ENI ${eni.eniId}: ${link.ifname} is down`]),
      ...(link.hasArp ? [] : [`kernel: ENI ${eni.eniId}: ${link.ifname} has no ARP`]),
      ...(link.master === '' ? [] : [`kernel: ENI ${eni.eniId}: ${link.ifname} is in ${link.master}`]),
      ...(kernel.rpFilter.get(link.ifname) === 1
        ? [`kernel: ENI ${eni.eniId}: ${link.ifname} has strict rp_filter`]
        : []),
      ...(kernel.links.filter(({ mac }) => mac === eni.mac).length === 1
        ? []
        : [`kernel: ENI ${eni.eniId}: more than one link has its MAC ${eni.mac}`]),
      ...primaries
        .filter((line) => !kernel.addresses.includes(line))
        .map((line) => `kernel: ENI ${eni.eniId}: address missing: ${line}`),
    ];
  });
}

function nftScope(scope: InvariantScope, journal: JournalFacts): NftScope {
  const mask = scope.eniMarkMask ?? MASK;
  return {
    isCompact: scope.ruleMode === 'compact',
    isNodePort: scope.nodePort !== false,
    mask,
    enis: scope.enis.map((eni) => {
      const { table, slot } = recordOf(journal, eni.eniId);
      return { table, mark: slot * lowestBit(mask) };
    }),
  };
}

function runtimeViolations(scope: InvariantScope, journal: JournalFacts): readonly string[] {
  const { sandboxes, undecided = [] } = scope;
  if (sandboxes === undefined) return [];
  const known = new Set([...undecided, ...sandboxes.map(({ id }) => id)]);
  return [
    ...journal.leases
      .filter((lease) => !known.has(lease.containerId))
      .map((lease) => `journal: lease ${lease.key} (${lease.ips}) has no sandbox in the runtime`),
    ...sandboxes.flatMap((sandbox) => {
      const leases = journal.leases.filter((lease) => lease.containerId === sandbox.id);
      if (leases.length === 0)
        return undecided.includes(sandbox.id) ? [] : [`runtime: sandbox ${sandbox.id} has no lease`];
      const leased = leases.flatMap((lease) => lease.ips);
      return (sandbox.ips ?? [])
        .filter((ip) => !leased.includes(ip))
        .map((ip) => `runtime: sandbox ${sandbox.id} has ${ip}, its lease ${leased}`);
    }),
  ];
}

function sameLines(what: string, expected: readonly string[], observed: readonly string[]): readonly string[] {
  const doubled = observed.filter((line, index) => observed.indexOf(line) !== index);
  return [
    ...expected.filter((line) => !observed.includes(line)).map((line) => `kernel: ${what} missing: ${line}`),
    ...observed.filter((line) => !expected.includes(line)).map((line) => `kernel: ${what} nobody wants: ${line}`),
    ...doubled.map((line) => `kernel: ${what} twice: ${line}`),
  ];
}

/** True for leases whose links are ours; under another main plugin (`ipam`) only the rules are. */
function isWired(lease: LeaseFacts): boolean {
  return lease.plugin !== 'ipam';
}

function isDirect(lease: LeaseFacts): boolean {
  return lease.plugin === 'direct-eni';
}

/** Of the host's end of its link. */
function groupOf(journal: JournalFacts, lease: LeaseFacts): number {
  if (lease.block !== undefined) return 0;
  return isDirect(lease) ? DIRECT_GROUP : tableOf(journal, lease.eniId);
}

function aliasOf(lease: LeaseFacts): string {
  return `tke-eni/${lease.containerId}/${lease.ifName}`;
}

function recordOf(journal: JournalFacts, eniId: string): { readonly table: number; readonly slot: number } {
  return journal.enis.find((record) => record.eniId === eniId) ?? { table: Number.NaN, slot: Number.NaN };
}

function tableOf(journal: JournalFacts, eniId: string): number {
  return recordOf(journal, eniId).table;
}

function ifnameOf(kernel: KernelFacts, eni: AttachedEni): string {
  return kernel.links.find((link) => link.mac === eni.mac)?.ifname ?? '(no link)';
}

function familiesOf(scope: InvariantScope): readonly (4 | 6)[] {
  return scope.families ?? (scope.enis.some((eni) => eni.primaryIpv6 !== undefined) ? [4, 6] : [4]);
}

function familyOf(prefix: string): 4 | 6 {
  return prefix.includes(':') ? 6 : 4;
}

function lowestBit(mask: number): number {
  return (mask & -mask) >>> 0;
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}
