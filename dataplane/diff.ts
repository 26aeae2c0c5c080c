import { sysctlName } from '../sysctl/sysctl-key.ts';
import { isMadeAgain } from './address-change.ts';
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
  isSameAddress,
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
import { familyOf, isLinkLocal, linkLocalPrefix, prefixLength } from './ip-prefix.ts';
import { nftReplaceCommands } from './nft-replace.ts';
import { PRIORITY, TABLE_MAIN } from './numbers.ts';
import type { ObservedHost, ObservedRule } from './observed.ts';
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
  const additions = addressOperations(desired, observed, missing);
  const left = withoutLost(observed, additions);
  return {
    operations: [
      ...ruleAdditions(desired, observed, isPodCidrRule),
      ...newBridges.map((bridge) => ({ kind: 'make-bridge' as const, bridge })),
      ...sysctlOperations(desired, observed),
      ...newSettings(desired, found, newBridges),
      ...linkOperations(desired, observed, withoutGroup, missing),
      ...portOperations(desired, observed, missing),
      ...linkOperations(desired, observed, ({ promisc }) => (promisc === undefined ? {} : { promisc })),
      ...additions,
      ...routeReplacements(desired, left, missing),
      ...neighReplacements(desired, left, missing),
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
      ...sysctlConflicts(desired, found),
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
    message: `link ${ifname} (index ${ifindex}) is gone; its Pod's sandbox must be made again, or its ENI attached again`,
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

function sysctlConflicts(desired: HostState, observed: ObservedHost): readonly Conflict[] {
  return missingSettings(desired, observed).map((sysctl) => ({
    kind: 'sysctl' as const,
    message: describeMissingSetting(sysctl),
  }));
}

/**
 * Lists the settings that the kernel lacks and should have. Those of a link come with it; a bridge that is made gets them
 * after it (`newSettings`).
 */
export function missingSettings(desired: HostState, observed: ObservedHost): readonly SysctlState[] {
  const present = new Set(observed.links.map((link) => link.ifindex));
  const absent = new Set(desired.links.filter(({ ifindex }) => !present.has(ifindex)).map(({ ifname }) => ifname));
  return desired.sysctls
    .filter((sysctl) => sysctl.isOptional !== true && !observed.sysctls.has(sysctlName(sysctl.key)))
    .filter((sysctl) => !sysctl.key.path.some((element) => absent.has(element)));
}

/** Describes a setting that the kernel lacks, for people. */
export function describeMissingSetting({ key, value }: SysctlState): string {
  const why = key.path.includes('ipv6') ? 'is IPv6 disabled on this node?' : 'was its link renamed a moment ago?';
  return `the kernel has no sysctl ${sysctlName(key)}, which should be ${value}; ${why}`;
}

function addressOperations(
  desired: HostState,
  observed: ObservedHost,
  missing: ReadonlySet<number>,
): readonly AddressAddition[] {
  const present = new Map(observed.addresses.map((address) => [addressKey(address), address]));
  const planned = desired.addresses.flatMap((address): readonly AddressAddition[] => {
    const before = present.get(addressKey(address));
    if (missing.has(address.ifindex) || (before !== undefined && isSameAddress(address, before))) return [];
    return [{ kind: 'add-address', address, ...(before && { before }) }];
  });
  return [...planned, ...linkLocalAdditions(desired, observed)];
}

/** The kernel makes a link-local address when a link comes up, but unless that is switched off; programs take it away, too. */
function linkLocalAdditions(desired: HostState, observed: ObservedHost): readonly AddressAddition[] {
  const wanted = new Set(desired.links.filter(({ linkLocal }) => linkLocal).map(({ ifindex }) => ifindex));
  const having = new Set(observed.addresses.filter(({ prefix }) => isLinkLocal(prefix)).map(({ ifindex }) => ifindex));
  return observed.links.flatMap(({ ifindex, ifname, isRunning, mac }): readonly AddressAddition[] => {
    if (!wanted.has(ifindex) || having.has(ifindex) || isRunning !== true || mac === undefined) return [];
    return [{ kind: 'add-address', address: { ifindex, ifname, prefix: linkLocalPrefix(mac) } }];
  });
}

type AddressAddition = Operation & { readonly kind: 'add-address' };

/**
 * Leaves out what goes with addresses that are deleted and added: routes by their links, or with them as the source, and
 * neighbours.
 */
function withoutLost(observed: ObservedHost, additions: readonly AddressAddition[]): ObservedHost {
  const lost = additions.flatMap(({ address, before }) => (before && isMadeAgain(address, before) ? [before] : []));
  if (lost.length === 0) return observed;
  const isOnLost = (ifindex: number, prefix: string): boolean =>
    lost.some((address) => address.ifindex === ifindex && familyOf(address.prefix) === familyOf(prefix));
  const sources = new Set(lost.map(({ prefix }) => prefix.split('/')[0]));
  return {
    ...observed,
    routes: observed.routes.filter(
      (route) => !isOurs(route) || !(isOnLost(route.oif, route.dst) || sources.has(route.prefsrc)),
    ),
    neighs: observed.neighs.filter(({ ifindex, dst }) => !isOnLost(ifindex, dst)),
  };
}

function routeReplacements(
  desired: HostState,
  observed: ObservedHost,
  missing: ReadonlySet<number>,
): readonly Operation[] {
  const present = Map.groupBy(observed.routes, routeKey);
  // A gateway must be reachable before a route leads through it: the longest prefixes first.
  const routes = desired.routes.toSorted((a, b) => prefixLength(b.dst) - prefixLength(a.dst));
  return routes.flatMap((route): readonly Operation[] => {
    const found = present.get(routeKey(route)) ?? [];
    // The kernel replaces the first route of the place, whose ever it is.
    if (missing.has(route.oif) || !found.every(isOurs)) return [];
    const right = found.find((one) => isSameRoute(route, one));
    const replaced = right ?? found.find((one) => isReplacedBy(one, route)) ?? found[0];
    const twins = found.filter((one) => one !== replaced);
    if (right !== undefined && twins.length === 0) return [];
    const before = right === undefined ? replaced : twins[0];
    return [
      {
        ...{ kind: 'replace-route', route },
        ...(before && { before: plainRoute(before) }),
        ...(twins.length > 0 && { twins: twins.map(plainRoute) }),
      },
    ];
  });
}

/** Returns which of several routes the kernel replaces: of IPv6 the first that has a gateway as the new one has, or has none. */
function isReplacedBy({ dst, gateway }: RouteState, route: RouteState): boolean {
  return familyOf(dst) === 4 || (gateway === undefined) === (route.gateway === undefined);
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
  const present = new Set(observed.rules.filter((rule) => isOurs(rule) || !isPodCidrRule(rule)).map(ruleKey));
  const withMore = new Set(
    observed.rules.filter(({ more }) => more !== undefined).map(({ more: _more, ...rule }) => ruleKey(rule)),
  );
  return desired.rules
    .filter((rule) => isMeant(rule) && !present.has(ruleKey(rule)))
    .map((rule) => ({
      ...{ kind: 'add-rule' as const, rule },
      ...(withMore.has(ruleKey(rule)) && { isBesideTwin: true as const }),
    }));
}

function ruleDeletions(desired: HostState, observed: ObservedHost): readonly Operation[] {
  const wanted = new Set(desired.rules.map(ruleKey));
  const kept = new Map<string, ObservedRule>();
  const deletions: (Operation & { readonly kind: 'delete-rule' })[] = [];
  for (const found of observed.rules.filter(isPrunableRule)) {
    const key = ruleKey(found);
    const isTwice = kept.has(key);
    if (wanted.has(key) && !isTwice) {
      kept.set(key, found);
      continue;
    }
    const keeps = isTwice ? [] : [...kept.values()].filter((rule) => isMatchedBy(rule, found)).map(plainRule);
    deletions.push({ kind: 'delete-rule', rule: plainRule(found), ...(keeps.length > 0 && { keeps }) });
  }
  // One whose request matches others that go too comes behind them.
  const matches = new Map(
    deletions.map((one) => [one, deletions.filter(({ rule }) => isMatchedBy(rule, one.rule)).length]),
  );
  return deletions.toSorted((a, b) => (matches.get(a) ?? 0) - (matches.get(b) ?? 0));
}

/**
 * Reports whether a request to delete `found` matches `rule`, of which the kernel deletes the first: it compares what the
 * request names, but not whether a rule is inverted.
 */
function isMatchedBy(rule: RuleState, { family, priority, table, src, dst, fwmark, fwmask, more }: RuleState): boolean {
  const { flags: _inverted, ...selectors } = more ?? {};
  const others: Readonly<Record<string, unknown>> = rule.more ?? {};
  return (
    rule.family === family &&
    rule.priority === priority &&
    rule.table === table &&
    (src ?? rule.src) === rule.src &&
    (dst ?? rule.dst) === rule.dst &&
    (fwmark ?? rule.fwmark) === rule.fwmark &&
    (fwmask ?? rule.fwmask) === rule.fwmask &&
    Object.entries(selectors).every(([name, value]) => JSON.stringify(value) === JSON.stringify(others[name]))
  );
}

function plainRule({ protocol: _protocol, shown: _shown, ...rule }: ObservedRule): RuleState {
  return rule;
}

function routeDeletions(desired: HostState, observed: ObservedHost): readonly Operation[] {
  const desiredKeys = new Set(desired.routes.map(routeKey));
  return observed.routes
    .filter((route) => isPrunableRoute(route, TABLE_MAIN) && !desiredKeys.has(routeKey(route)))
    .map((route) => ({ kind: 'delete-route' as const, route: plainRoute(route) }));
}

function plainRoute(found: ObservedHost['routes'][number]): RouteState {
  const { protocol: _protocol, shown: _shown, ...route } = found;
  return route;
}

function nftOperations(desired: HostState, observed: ObservedHost): readonly Operation[] {
  if (desired.nft === undefined || desired.nft.text === observed.nft.text) return [];
  const { restore, former } = observed.nft;
  const commands = nftReplaceCommands(desired.nft, former);
  return [{ kind: 'load-nft', commands, ...(restore !== undefined && { before: restore }) }];
}
