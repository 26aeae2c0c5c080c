import { type HostState, isSameRoute, type RouteState, type RuleState } from '../../dataplane/desired.ts';
import { describeMissingSetting, diffHost, missingSettings } from '../../dataplane/diff.ts';
import { familyOf, isLinkLocal } from '../../dataplane/ip-prefix.ts';
import type { RuleMode } from '../../dataplane/network.ts';
import { FLOW_PROGRAM_NAME, FLOWTABLE_TABLE, PRIORITY } from '../../dataplane/numbers.ts';
import type { ObservedHost } from '../../dataplane/observed.ts';
import { type Operation, renderRoute, renderRule } from '../../dataplane/operation.ts';
import { rpFilter, sysctlName } from '../../sysctl/sysctl-key.ts';
import { type FindingId, finding } from '../catalogue/catalogue.ts';
import { type ElementId, eniId, linkId, podId, routeId, sysctlId } from '../catalogue/element-id.ts';
import type { DesiredNode } from '../desired/desired-of.ts';
import type { DifferenceOwner, ObjectNames } from '../model/build-names.ts';
import { consequenceWithoutBlockRule } from '../node/consequence-without-block-rule.ts';
import { ruleElement } from '../node/rule-selector.ts';
import { renderChange } from './change.ts';
import { describeAddress, describeBridge } from './describe-bridge.ts';
import type { Difference, OperationFinding } from './difference.ts';

/**
 * Returns one difference for each operation that would repair the host's namespace. A rule with a wrong table is one
 * difference, though it needs two operations. Where parts of the plan are missing, objects that the plan lacks are not
 * reported.
 */
export function compareHost(desired: DesiredNode, observed: ObservedHost, names: ObjectNames): readonly Difference[] {
  const operations = hostOperations(desired, observed);
  const deletions = operations.flatMap((operation) => (isDeleteRule(operation) ? [operation] : []));
  const moved = new Map<Operation, Operation>();
  for (const operation of operations) {
    if (operation.kind !== 'add-rule') continue;
    const old = deletions.find((deletion) => isSameSelector(deletion.rule, operation.rule));
    if (old !== undefined) moved.set(operation, old);
  }
  const replaced = new Set(moved.values());
  const ours = operations
    .filter((operation) => !replaced.has(operation))
    .flatMap((operation): readonly Difference[] => {
      const before = moved.get(operation);
      return hostDifferences(operation, { before, host: desired.host, observed, names, ruleMode: desired.ruleMode });
    });
  return [...ours, ...settingsNotThere(desired, observed, names)];
}

/** What the description of an operation is made of. */
type OperationPlace = {
  /** Another operation that is half of the same change. */
  readonly before?: Operation | undefined;
  readonly host: Pick<HostState, 'links'>;
  readonly observed: Pick<ObservedHost, 'sysctls' | 'nft'>;
  readonly names: ObjectNames;
  readonly ruleMode: RuleMode;
};

/** The table of what an operation on the host repairs: several faults of a link, one of anything else, none of what is not compared. */
export function hostDifferences(operation: Operation, place: OperationPlace): readonly Difference[] {
  const { before, host, observed, names, ruleMode } = place;
  const changes = before === undefined ? [operation] : [operation, before];
  const found =
    describeBridge(operation, host, names) ?? describe(operation, before, { ...observed, links: host.links }, names);
  const more = blockRuleDetails(operation, ruleMode);
  const family = familyOfOperation(operation);
  return found.map(({ id, owner, what, subject, severity }) => ({
    ...differenceOf(id, { owner, what, subjects: [subject], changes, ...more, ...(severity && { severity }) }, names),
    ...(family && { family }),
  }));
}

/** Returns the family of the packets that an operation is for; undefined where it is for both. */
export function familyOfOperation(operation: Operation): 4 | 6 | undefined {
  switch (operation.kind) {
    case 'add-address':
    case 'delete-address':
      return familyOf(operation.address.prefix);
    case 'replace-route':
    case 'delete-route':
      return familyOf(operation.route.dst);
    case 'add-rule':
    case 'delete-rule':
      return operation.rule.family;
    case 'replace-neigh':
    case 'delete-neigh':
      return familyOf(operation.neigh.dst);
    default:
      return undefined;
  }
}

/** Names settings that this kernel does not have: of IPv6, as one booted without it, or of a link that was renamed since. */
function settingsNotThere(desired: DesiredNode, observed: ObservedHost, names: ObjectNames): readonly Difference[] {
  const owner: DifferenceOwner = { kind: 'node' };
  return missingSettings(desired.host, observed).map((setting) => {
    const isIpv6 = setting.key.path.includes('ipv6');
    const fix = isIpv6
      ? ['take ipv6.disable=1 off the kernel command line, or give the node no IPv6 addresses']
      : ['tke-eni diff'];
    const details = { what: describeMissingSetting(setting), fix, subjects: [], isOurs: false };
    const id = isIpv6 ? 'ipv6-disabled' : 'sysctl-changed';
    return { ...finding(id, details), whose: names.text(owner), owner, changes: [] };
  });
}

/**
 * Returns the operations that repair may run on the host, in a safe order. Filters of the fast path are attached by the
 * agent alone, which has their programs, and to the link of a new Pod only some seconds after its ADD.
 */
export function hostOperations(desired: DesiredNode, observed: ObservedHost): readonly Operation[] {
  const { operations } = diffHost(desired.host, observed);
  return operations.filter(
    (operation) =>
      operation.kind !== 'attach-filter' &&
      (!isRemoval(operation) || (desired.isComplete && !isInTransit(operation, desired))),
  );
}

function isRemoval({ kind }: Operation): boolean {
  return kind.startsWith('delete-') || kind === 'detach-filter';
}

function isInTransit(operation: Operation, { inTransit }: DesiredNode): boolean {
  const prefixes =
    operation.kind === 'delete-route'
      ? [operation.route.dst]
      : operation.kind === 'delete-rule'
        ? [operation.rule.src, operation.rule.dst]
        : [];
  return prefixes.some((prefix) => prefix !== undefined && inTransit.has(prefix.split('/')[0] ?? prefix));
}

/** Cures each difference from the plan; what follows it in a cure is the same by hand. */
export const REPAIR = 'tke-eni repair';

function differenceOf(
  id: FindingId,
  details: {
    readonly owner: DifferenceOwner;
    readonly what: string;
    readonly subjects: readonly ElementId[];
    readonly changes: readonly Operation[];
    readonly why?: string;
    readonly severity?: Difference['severity'];
  },
  names: ObjectNames,
): Difference {
  const changes = details.changes.map((operation) => ({ kind: 'host' as const, operation }));
  const { owner, what, why, severity } = details;
  const fix = [REPAIR, ...changes.map(renderChange)];
  const subjects = [...details.subjects, ...subjectOf(owner)];
  return {
    ...finding(id, { what, fix, subjects, isOurs: true, ...(why && { why }), ...(severity && { severity }) }),
    whose: names.text(owner),
    owner,
    changes,
  };
}

/** Says what follows from a missing rule of a block of GlobalRoute Pods. The severity stays that of its kind. */
function blockRuleDetails(operation: Operation, ruleMode: RuleMode): { readonly why?: string } {
  if (operation.kind !== 'add-rule' || operation.rule.priority !== PRIORITY.podCidr) return {};
  return { why: consequenceWithoutBlockRule(ruleMode).why };
}

/** Returns the graph element of an owner; none for the node. */
export function subjectOf(owner: DifferenceOwner): readonly ElementId[] {
  if (owner.kind === 'pod') return [podId(owner.key)];
  return owner.kind === 'eni' ? [eniId(owner.eniId)] : [];
}

function describe(
  operation: Operation,
  before: Operation | undefined,
  { links, ...observed }: Pick<ObservedHost, 'sysctls' | 'nft'> & Pick<HostState, 'links'>,
  names: ObjectNames,
): readonly OperationFinding[] {
  switch (operation.kind) {
    case 'set-sysctl':
      return [describeSysctl(operation, observed, names)];
    case 'set-link':
      return describeLink(operation, names, links);
    case 'add-address': {
      const { ifindex, prefix } = operation.address;
      const missing = isLinkLocal(prefix) ? 'link-local-missing' : 'eni-without-address';
      const { id, what } = describeAddress(operation, missing);
      return [{ id, owner: names.ofIfindex(ifindex), what, subject: linkId(ifindex) }];
    }
    case 'replace-route':
    case 'delete-route':
      return [describeRoute(operation, names)];
    case 'add-rule':
    case 'delete-rule':
      return [describeRule(operation, before, names)];
    case 'load-nft':
      return [tableFault(observed.nft.restore !== undefined)];
    case 'detach-filter': {
      const { ifindex, ifname, direction, program } = operation.filter;
      const what = `the filter ${FLOW_PROGRAM_NAME[program]} at the ${direction} of ${ifname} is ours and is not in the plan`;
      return [{ id: 'fast-path', owner: names.ofIfindex(ifindex), what, subject: linkId(ifindex) }];
    }
    case 'replace-flowtable':
    case 'delete-flowtable':
      return [describeFlowtable(operation, observed)];
    // A device that lacks may be a Pod's whose ADD was a moment ago: only the agent knows.
    case 'add-flow-devices':
    case 'delete-flow-devices':
      return [];
    // A plan of the host contains no neighbours; the bridge and its ports are described elsewhere; the agent attaches.
    case 'attach-filter':
    case 'make-bridge':
    case 'set-port':
    case 'replace-neigh':
    case 'delete-neigh':
    case 'delete-address':
    case 'delete-bridge':
      return [];
  }
}

/** Says that our nftables table is missing, or not as planned. */
export function tableFault(isThere: boolean): OperationFinding {
  const what = `nftables table inet tke_eni is ${isThere ? 'not as it was written' : 'missing'}`;
  const id = isThere ? 'nft-table-changed' : 'nft-table-missing';
  return { id, owner: { kind: 'node' }, what, subject: 'nft:tke_eni' };
}

function describeFlowtable(
  { kind }: Operation & { readonly kind: 'replace-flowtable' | 'delete-flowtable' },
  { nft }: Pick<ObservedHost, 'nft'>,
): OperationFinding {
  const isThere = nft.flowtable !== undefined;
  const how =
    kind === 'delete-flowtable' ? 'left of a fast path that is off' : isThere ? 'not as it was written' : 'missing';
  return {
    id: isThere ? 'nft-table-changed' : 'nft-table-missing',
    owner: { kind: 'node' },
    what: `nftables table inet ${FLOWTABLE_TABLE} is ${how}`,
    subject: `nft:${FLOWTABLE_TABLE}`,
  };
}

function describeSysctl(
  operation: Operation & { readonly kind: 'set-sysctl' },
  { sysctls }: Pick<ObservedHost, 'sysctls'>,
  names: ObjectNames,
): OperationFinding {
  const { key, value, before } = operation;
  const name = sysctlName(key);
  const [, , , ifname = ''] = key.path;
  const owner = key.path.includes('conf') ? names.ofIfname(ifname) : ({ kind: 'node' } as const);
  // The kernel takes the larger one of `all` and the interface.
  const all = sysctlName(rpFilter('all'));
  const isByAll = key.path.at(-1) === 'rp_filter' && before === '0' && value === '2' && sysctls.get(all) === '1';
  const what = `${name} is ${before}, should be ${value}${isByAll ? `; ${all} makes it strict` : ''}`;
  return { id: sysctlFinding(key.path, isByAll ? '1' : before, owner), owner, what, subject: sysctlId(name) };
}

function sysctlFinding(path: readonly string[], before: string, owner: DifferenceOwner): FindingId {
  const setting = path.at(-1);
  const isOfNode = path.includes('ipv4') || path.includes('all');
  if (setting === 'ip_forward' || (setting === 'forwarding' && isOfNode)) return 'ip-forward-off';
  if (setting === 'bridge-nf-call-iptables') return 'br-netfilter';
  if (setting !== 'rp_filter') return 'sysctl-changed';
  if (owner.kind === 'pod') return 'rp-filter-off';
  return before === '1' ? 'rp-filter-strict' : 'sysctl-changed';
}

type SetLink = Operation & { readonly kind: 'set-link' };

function describeLink(operation: SetLink, names: ObjectNames, links: HostState['links']): readonly OperationFinding[] {
  const { ifindex, ifname, change, before } = operation;
  const owner = names.ofIfindex(ifindex);
  const entry = (id: FindingId, what: string): OperationFinding => ({ id, owner, what, subject: linkId(ifindex) });
  const link = { node: ifname, eni: names.text(owner), pod: `${ifname} of ${names.text(owner)}` }[owner.kind];
  return [
    ...(change.up === undefined ? [] : [entry(owner.kind === 'eni' ? 'eni-down' : 'veth-down', `${link} is down`)]),
    ...(change.mtu === undefined
      ? []
      : [entry('mtu-mismatch', `MTU of ${ifname} is ${before.mtu}, should be ${change.mtu}`)]),
    ...(change.group === undefined
      ? []
      : [entry('link-group-wrong', `${ifname} is in link group ${before.group}, should be ${change.group}`)]),
    ...(change.mac === undefined
      ? []
      : [
          owner.kind === 'eni'
            ? entry('eni-mac-changed', `MAC of ${ifname} is ${before.mac}, should be ${change.mac}, that of the ENI`)
            : entry(
                'veth-mac-changed',
                `MAC of ${ifname} is ${before.mac}, should be ${change.mac}: its Pod sends to that one`,
              ),
        ]),
    ...(change.ifalias === undefined
      ? []
      : [entry('veth-alias-changed', `alias of ${ifname} is "${before.ifalias}", should be "${change.ifalias}"`)]),
    ...(change.arp === undefined ? [] : [entry('link-noarp', `${link} has ARP turned off`)]),
    ...masterFaults(operation, { entry, link, names, links }),
  ];
}

/** A link is a port of the bridge that is planned, or of none. */
function masterFaults(
  { ifname, change, before }: SetLink,
  {
    entry,
    link,
    names,
    links,
  }: {
    readonly entry: (id: FindingId, what: string) => OperationFinding;
    readonly link: string;
    readonly names: ObjectNames;
    readonly links: HostState['links'];
  },
): readonly OperationFinding[] {
  if (change.master === undefined) return [];
  const where = names.link(before.master ?? 0);
  if (change.master === 0) return [entry('link-enslaved', `${link} is in ${where}, which takes what comes in by it`)];
  const bridge = links.find(({ ifindex }) => ifindex === change.master)?.ifname;
  const isIn = before.master === 0 ? 'no bridge' : where;
  return [entry('bridge-port-changed', `${ifname} is in ${isIn}, should be in ${bridge}`)];
}

function describeRoute(
  operation: Operation & { readonly kind: 'replace-route' | 'delete-route' },
  names: ObjectNames,
): OperationFinding {
  const { route } = operation;
  const shown = `"${renderRoute(route)}"`;
  const byTable = names.ofTable(route.table);
  const owner = byTable.kind === 'node' ? names.ofAddress(route.dst) : byTable;
  const common = { owner, subject: routeId(route.table, route.dst) };
  if (operation.kind === 'delete-route') {
    return { ...common, id: 'route-stale', what: `route ${shown} is ours and is not in the plan` };
  }
  if (operation.before === undefined) return { ...common, id: 'route-missing', what: `route ${shown} is missing` };
  const what = `route is "${renderRoute(operation.before)}", should be ${shown}`;
  return { ...common, id: isDetour(operation.before, route) ? 'route-wrong-device' : 'attribute-changed', what };
}

/** Reports whether a route leads elsewhere, as one that refuses, or one with several next hops, does too. */
export function isDetour({ more, ...found }: RouteState, route: RouteState): boolean {
  return (
    !isSameRoute(found, route) || more?.type !== undefined || more?.multipath !== undefined || more?.via !== undefined
  );
}

function describeRule(
  { kind, rule }: Operation & { readonly kind: 'add-rule' | 'delete-rule' },
  before: Operation | undefined,
  names: ObjectNames,
): OperationFinding {
  const shown = renderRule(rule);
  const address = rule.src ?? rule.dst;
  const byAddress = address === undefined ? undefined : names.ofAddress(address);
  const owner = byAddress === undefined || byAddress.kind === 'node' ? names.ofTable(rule.table) : byAddress;
  const subject = ruleElement(rule);
  const name = `IPv${rule.family} rule`;
  if (kind === 'delete-rule') {
    return { id: 'rule-stale', owner, what: `${name} "${shown}" is ours and is not in the plan`, subject };
  }
  if (before?.kind !== 'delete-rule')
    return { id: 'rule-missing', owner, what: `${name} "${shown}" is missing`, subject };
  const what = `${name} is "${renderRule(before.rule)}", should be "${shown}"`;
  return { id: 'rule-wrong-table', owner, what, subject };
}

function isSameSelector(a: RuleState, b: RuleState): boolean {
  return (
    a.family === b.family &&
    a.priority === b.priority &&
    a.src === b.src &&
    a.dst === b.dst &&
    a.fwmark === b.fwmark &&
    a.fwmask === b.fwmask &&
    a.more === undefined &&
    b.more === undefined
  );
}

type RuleDeletion = Operation & { readonly kind: 'delete-rule' | 'add-rule' };

function isDeleteRule(operation: Operation): operation is RuleDeletion {
  return operation.kind === 'delete-rule';
}
