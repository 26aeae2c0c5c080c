import { sysctlName } from '../sysctl/sysctl-key.ts';
import {
  addressConflicts,
  type Conflict,
  isOurs,
  isPrunableRoute,
  isPrunableRule,
  nameConflicts,
  routeConflicts,
  ruleConflicts,
  unreadableObjects,
} from './conflict.ts';
import {
  addressKey,
  type HostState,
  isSameRoute,
  type LinkState,
  neighKey,
  type RouteState,
  type RuleState,
  routeKey,
  ruleKey,
  type SysctlState,
} from './desired.ts';
import { bridgesToMake, formerGateways, newSettings, portOperations, withBridges } from './diff-bridge.ts';
import { filterAttachments, filterConflicts, filterDetachments } from './diff-filters.ts';
import { flowtableDeletion, flowtableOperations } from './diff-flowtable.ts';
import { linkOperations, withoutGroup } from './diff-link.ts';
import { prefixLength } from './ip-prefix.ts';
import { nftReplaceCommands } from './nft-table.ts';
import { PRIORITY, TABLE_MAIN } from './numbers.ts';
import type { ObservedHost } from './observed.ts';
import type { Operation } from './operation.ts';

/** The operations, in an order that never leaves packets without a route, and the conflicts with foreign objects. */
type Diff = { readonly operations: readonly Operation[]; readonly conflicts: readonly Conflict[] };

/**
 * Compares the wanted state with the observed one.
 *
 * The order of operations is safe in both directions of a rule-mode change: everything that a packet may need is added
 * before what it used until now is deleted. First rule 1024 of each block of GlobalRoute Pods: without it, per-pod rules
 * send packets to these Pods round and round through the VPC. Then bridges, settings, links, ports of bridges, addresses, routes and rules. Then the nftables
 * table, which moves packets from the old rules to the new ones; before it the fast path's filters, which do nothing until
 * the table marks packets, and after it the flowtable and those that are not planned any more. Then link groups, whose map entries must be loaded
 * first. Then old rules and old routes are deleted.
 *
 * While some object could not be read nothing is deleted, and a table that is there is not replaced: the plan may lack
 * what belongs to a link that was not read.
 */
export function diffHost(desired: HostState, found: ObservedHost): Diff {
  const newBridges = bridgesToMake(desired, found);
  const observed = withBridges(found, newBridges);
  const missing = missingLinks(desired, observed);
  const isWhole = (observed.unreadable ?? []).length === 0;
  return {
    operations: [
      ...ruleAdditions(desired, observed, isPodCidrRule),
      ...newBridges.map((bridge) => ({ kind: 'make-bridge' as const, bridge })),
      ...sysctlOperations(desired, observed),
      ...newSettings(desired, found, newBridges),
      ...linkOperations(desired, observed, withoutGroup, missing),
      ...portOperations(desired, observed, missing),
      ...linkOperations(desired, observed, ({ promisc }) => (promisc === undefined ? {} : { promisc })),
      ...addressOperations(desired, observed, missing),
      ...routeReplacements(desired, observed, missing),
      ...neighReplacements(desired, observed, missing),
      ...ruleAdditions(desired, observed, (rule) => !isPodCidrRule(rule)),
      ...filterAttachments(desired, observed, missing),
      ...(isWhole || observed.nft.restore === undefined ? nftOperations(desired, observed) : []),
      ...(isWhole || observed.nft.flowtable === undefined ? flowtableOperations(desired, observed, missing) : []),
      ...linkOperations(desired, observed, ({ group }) => (group === undefined ? {} : { group })),
      ...(isWhole ? filterDetachments(desired, observed) : []),
      ...(isWhole ? flowtableDeletion(desired, observed) : []),
      ...(isWhole ? formerGateways(desired, observed) : []),
      ...(isWhole ? ruleDeletions(desired, observed) : []),
      ...(isWhole ? routeDeletions(desired, observed) : []),
    ],
    conflicts: [
      ...desired.links.filter((link) => missing.has(link.ifindex)).map((link) => missingLink(link, observed)),
      ...sysctlConflicts(desired, observed, new Set(newBridges.map(({ ifname }) => ifname))),
      ...ruleConflicts(desired, observed),
      ...routeConflicts(desired, observed),
      ...addressConflicts(desired, observed),
      ...filterConflicts(desired, observed),
      ...nameConflicts(desired),
      ...unreadableObjects(observed),
    ],
  };
}

function missingLinks(desired: HostState, observed: ObservedHost): ReadonlySet<number> {
  const present = new Set(observed.links.map((link) => link.ifindex));
  return new Set(desired.links.map((link) => link.ifindex).filter((ifindex) => !present.has(ifindex)));
}

function missingLink({ ifindex, ifname, kind }: LinkState, { links }: ObservedHost): Conflict {
  const other = kind === 'bridge' ? links.find((link) => link.ifname === ifname) : undefined;
  if (other !== undefined) {
    return {
      kind: 'link',
      message: `a link of kind ${other.kind ?? 'device'} has the name ${ifname}, which the bridge of GlobalRoute Pods needs; rename it (ip link set dev ${ifname} name …), or use --gr-wiring=routed`,
    };
  }
  return {
    kind: 'link',
    message: `link ${ifname} (index ${ifindex}) is gone; its Pod's sandbox must be made anew, or its ENI attached again`,
  };
}

function sysctlOperations(desired: HostState, observed: ObservedHost): readonly Operation[] {
  return desired.sysctls.flatMap((sysctl): readonly Operation[] => {
    const operation = sysctlDifference(sysctl, observed.sysctls.get(sysctlName(sysctl.key)));
    return operation === undefined ? [] : [operation];
  });
}

/**
 * Returns the operation that one setting needs; undefined when it is as planned, is missing, or has a value that is left
 * alone.
 */
export function sysctlDifference(
  { key, value, replaces }: SysctlState,
  before: string | undefined,
): Extract<Operation, { kind: 'set-sysctl' }> | undefined {
  if (before === undefined || before === value) return undefined;
  if (replaces !== undefined && before !== replaces) return undefined;
  return { kind: 'set-sysctl', key, value, before };
}

function sysctlConflicts(desired: HostState, observed: ObservedHost, made: ReadonlySet<string>): readonly Conflict[] {
  const present = new Set(observed.links.map((link) => link.ifindex));
  const absent = desired.links.filter(({ ifindex }) => !present.has(ifindex)).map(({ ifname }) => ifname);
  // The settings of a link come with it; those of a bridge that this pass makes are set after it (`newSettings`).
  const missingNames = new Set([...absent, ...made]);
  return desired.sysctls
    .filter((sysctl) => sysctl.isOptional !== true && !observed.sysctls.has(sysctlName(sysctl.key)))
    .filter((sysctl) => !sysctl.key.path.some((element) => missingNames.has(element)))
    .map((sysctl) => ({
      kind: 'sysctl' as const,
      message: `the kernel has no sysctl ${sysctlName(sysctl.key)}, which should be ${sysctl.value}; is IPv6 disabled on this node?`,
    }));
}

function addressOperations(
  desired: HostState,
  observed: ObservedHost,
  missing: ReadonlySet<number>,
): readonly Operation[] {
  const present = new Set(observed.addresses.map(addressKey));
  return desired.addresses
    .filter((address) => !missing.has(address.ifindex) && !present.has(addressKey(address)))
    .map((address) => ({ kind: 'add-address' as const, address }));
}

function routeReplacements(
  desired: HostState,
  observed: ObservedHost,
  missing: ReadonlySet<number>,
): readonly Operation[] {
  const present = new Map(observed.routes.map((route) => [routeKey(route), route]));
  // A gateway must be reachable before a route leads through it: the longest prefixes first.
  const routes = desired.routes.toSorted((a, b) => prefixLength(b.dst) - prefixLength(a.dst));
  return routes.flatMap((route): readonly Operation[] => {
    const found = present.get(routeKey(route));
    if (missing.has(route.oif)) return [];
    if (found === undefined) return [{ kind: 'replace-route', route }];
    if (!isOurs(found) || isSameRoute(route, found)) return [];
    return [{ kind: 'replace-route', route, before: plainRoute(found) }];
  });
}

function neighReplacements(
  desired: HostState,
  observed: ObservedHost,
  missing: ReadonlySet<number>,
): readonly Operation[] {
  const present = new Map(observed.neighs.map((neigh) => [neighKey(neigh), neigh]));
  return desired.neighs.flatMap((neigh): readonly Operation[] => {
    const before = present.get(neighKey(neigh));
    if (missing.has(neigh.ifindex) || before?.lladdr === neigh.lladdr) return [];
    return [{ kind: 'replace-neigh', neigh, ...(before && { before }) }];
  });
}

function isPodCidrRule({ priority }: RuleState): boolean {
  return priority === PRIORITY.podCidr;
}

function ruleAdditions(
  desired: HostState,
  observed: ObservedHost,
  isMeant: (rule: RuleState) => boolean,
): readonly Operation[] {
  // The rule of another program for a block goes with that program: ours is added beside it.
  const present = new Set(
    observed.rules.filter((rule) => !rule.isExotic && (isOurs(rule) || !isPodCidrRule(rule))).map(ruleKey),
  );
  return desired.rules
    .filter((rule) => isMeant(rule) && !present.has(ruleKey(rule)))
    .map((rule) => ({ kind: 'add-rule' as const, rule }));
}

function ruleDeletions(desired: HostState, observed: ObservedHost): readonly Operation[] {
  const desiredKeys = new Set(desired.rules.map(ruleKey));
  return observed.rules
    .filter((rule) => isPrunableRule(rule) && !desiredKeys.has(ruleKey(rule)))
    .map((found): Operation => {
      const { protocol: _protocol, shown: _shown, isExotic: _isExotic, ...rule } = found;
      return { kind: 'delete-rule', rule };
    });
}

function routeDeletions(desired: HostState, observed: ObservedHost): readonly Operation[] {
  const desiredKeys = new Set(desired.routes.map(routeKey));
  return observed.routes
    .filter((route) => isPrunableRoute(route, TABLE_MAIN) && !desiredKeys.has(routeKey(route)))
    .map((route) => ({ kind: 'delete-route' as const, route: plainRoute(route) }));
}

function plainRoute(found: ObservedHost['routes'][number]): RouteState {
  const { protocol: _protocol, shown: _shown, isExotic: _isExotic, ...route } = found;
  return route;
}

function nftOperations(desired: HostState, observed: ObservedHost): readonly Operation[] {
  if (desired.nft === undefined || desired.nft.text === observed.nft.text) return [];
  const { restore } = observed.nft;
  return [
    { kind: 'load-nft', commands: nftReplaceCommands(desired.nft), ...(restore !== undefined && { before: restore }) },
  ];
}
