import type { AddressState, HostState, RouteState, RuleState } from './desired.ts';
import { addressKey, isSameRoute, routeKey, ruleKey } from './desired.ts';
import { hex, overlaps } from './eni-mark.ts';
import { familyOf, isHostPrefix, prefixLength } from './ip-prefix.ts';
import {
  isEniTable,
  isOurTable,
  OUR_PRIORITIES,
  PRIORITY,
  RTPROT_TKE_ENI,
  TABLE_MAIN,
  TABLE_POD_ROUTES,
} from './numbers.ts';
import type { ObservedHost, ObservedRoute, ObservedRule } from './observed.ts';
import { isGatewayPrefix } from './pod-cidr.ts';

/**
 * A foreign object in the place of one of ours, or a missing object that ours depend on. Conflicts are reported and not
 * changed.
 */
export type Conflict = {
  readonly kind:
    | 'rule'
    | 'route'
    | 'table'
    | 'priority'
    | 'mark'
    | 'address'
    | 'link'
    | 'sysctl'
    | 'name'
    | 'filter'
    | 'unreadable';
  /** Names the thing, the place and the next step. */
  readonly message: string;
  /** Whose place it is in, for a rule or route; absent for other things. */
  readonly at?: ConflictPlace;
};

/**
 * The place of a foreign rule or route. `table`: the routing table, of an ENI, of Pods, or main. `pod`: the host prefix of the
 * one Pod that the place serves; absent where it serves an ENI or the node.
 */
type ConflictPlace = { readonly table: number; readonly shown: string; readonly pod?: string };

/** Conflicts that stop packets; others are worth a warning only. */
const BLOCKING: ReadonlySet<Conflict['kind']> = new Set(['rule', 'route', 'table', 'mark']);

/** Reports whether a conflict stops packets of an ENI's Pods, or of the node's: what is in the place of one Pod is that Pod's. */
export function isBlocking({ kind, at }: Conflict): boolean {
  return BLOCKING.has(kind) && at?.pod === undefined;
}

/**
 * Finds foreign rules that equal one of ours, look up one of our tables, use bits of our marks, or have one of our
 * priorities.
 */
export function ruleConflicts(desired: HostState, observed: ObservedHost): readonly Conflict[] {
  const desiredKeys = new Set(desired.rules.map(ruleKey));
  const tables = ourTables(desired);
  const masks = new Set(desired.rules.flatMap((rule) => (rule.fwmask === undefined ? [] : [rule.fwmask])));
  return observed.rules
    .filter((rule) => !isOurs(rule))
    .flatMap((rule): readonly Conflict[] => {
      const conflict = foreignRule(rule, desiredKeys, tables, masks);
      return conflict === undefined ? [] : [conflict];
    });
}

/**
 * Finds foreign routes in our tables, and in main those that stand in place of one of ours. One in main that leads the
 * same way is none: cilium-agent with `endpointRoutes.enabled` replaces the route of each Pod by its own at each change of
 * the Pod's policies, and two programs that replaced each other's would never end.
 */
export function routeConflicts(desired: HostState, observed: ObservedHost): readonly Conflict[] {
  const planned = new Map(desired.routes.map((route) => [routeKey(route), route]));
  const tables = ourTables(desired);
  return observed.routes
    .filter((route) => !isOurs(route))
    .flatMap((route): readonly Conflict[] => {
      const where = `route "${route.shown}" in table ${route.table}`;
      const at = routePlace(route);
      const ours = planned.get(routeKey(route));
      if (ours !== undefined) {
        if (route.table === TABLE_MAIN && isSameRoute(ours, route)) return [];
        return [
          {
            kind: 'route',
            message: `${where} stands where ours should; remove it, or stop the program that adds it`,
            at,
          },
        ];
      }
      if (!tables.has(route.table)) return [];
      return [
        {
          kind: 'table',
          message: `${where} is not ours, the table is; remove it, or stop the program that adds it`,
          at,
        },
      ];
    });
}

/** Finds IPv4 addresses with harmful effects: on a Pod's host veth, and with a connected route on an ENI. */
export function addressConflicts(desired: HostState, observed: ObservedHost): readonly Conflict[] {
  const eniIfindexes = new Set(desired.addresses.map((address) => address.ifindex));
  const bridgeIfindexes = new Set(desired.links.filter(({ kind }) => kind === 'bridge').map(({ ifindex }) => ifindex));
  const vethIfindexes = new Set(desired.links.filter((link) => link.group !== undefined).map((link) => link.ifindex));
  const planned = new Set(desired.addresses.map(addressKey));
  return observed.addresses.flatMap((address): readonly Conflict[] => {
    if (familyOf(address.prefix) !== 4 || planned.has(addressKey(address))) return [];
    if (bridgeIfindexes.has(address.ifindex)) return isGatewayPrefix(address.prefix) ? [] : [bridgeAddress(address)];
    if (vethIfindexes.has(address.ifindex)) return [vethAddress(address)];
    const hasRoute = prefixLength(address.prefix) < 32 || address.more?.address !== undefined;
    return eniIfindexes.has(address.ifindex) && hasRoute ? [eniAddress(address)] : [];
  });
}

/** Names ENIs' interfaces that nftables cannot name: only connections that come in by such an ENI itself are concerned. */
export function nameConflicts({ nft }: HostState): readonly Conflict[] {
  return (nft?.unnamed ?? []).map((ifname) => ({
    kind: 'name',
    message: `interface name "${ifname}" of an ENI cannot be written in nftables: NodePort connections to the ENI's own address may be answered by another interface; rename it (ip link set dev … name …)`,
  }));
}

/** Reports objects that the kernel listed and that could not be read: they are passed over. */
export function unreadableObjects({ unreadable = [] }: ObservedHost): readonly Conflict[] {
  return unreadable.map((what) => ({
    kind: 'unreadable',
    message: `an object of the kernel cannot be read and is passed over: ${what}; compare with ip -d link, ip rule, ip route show table all`,
  }));
}

/** Reports whether a route or rule is ours, whatever it has besides: then it may be replaced, and deleted. */
export function isOurs({ protocol }: Pick<ObservedRoute | ObservedRule, 'protocol'>): boolean {
  return protocol === RTPROT_TKE_ENI;
}

/** Reports whether an unwanted rule of ours may be deleted: only at our priorities. */
export function isPrunableRule(rule: ObservedRule): boolean {
  return isOurs(rule) && OUR_PRIORITIES.includes(rule.priority);
}

/** Reports whether an unwanted route of ours may be deleted: only in our tables and in main. */
export function isPrunableRoute(route: ObservedRoute, mainTable: number): boolean {
  return isOurs(route) && (route.table === mainTable || isOurTable(route.table));
}

function foreignRule(
  rule: ObservedRule,
  desiredKeys: ReadonlySet<string>,
  tables: ReadonlySet<number>,
  masks: ReadonlySet<number>,
): Conflict | undefined {
  const what = `IPv${rule.family} rule "${rule.shown}" at priority ${rule.priority}`;
  const at = { table: rule.table, shown: rule.shown };
  if (desiredKeys.has(ruleKey(rule))) {
    // The rule of another program for a block does the same, and ours can stand beside it.
    if (rule.priority === PRIORITY.podCidr) return undefined;
    return {
      kind: 'rule',
      message: `${what} equals one of ours but has protocol ${rule.protocol}; delete it, ours is added then`,
      at: { ...at, ...podOfRule(rule) },
    };
  }
  if (tables.has(rule.table)) {
    return {
      kind: 'table',
      message: `${what} is not ours but looks up our table ${rule.table}; move its owner to another table`,
      at,
    };
  }
  const mask =
    rule.fwmark === undefined ? undefined : [...masks].find((ours) => overlaps(ours, rule.fwmask ?? 0xffffffff));
  if (mask !== undefined) {
    return {
      kind: 'mark',
      message: `${what} uses bits of our mark mask ${hex(mask)}; choose another --eni-mark-mask or move its owner`,
      at,
    };
  }
  if (OUR_PRIORITIES.includes(rule.priority)) {
    return {
      kind: 'priority',
      message: `${what} is not ours but stands at our priority; move its owner to another priority`,
      at,
    };
  }
  return undefined;
}

/** A route to one address serves one Pod, but for what is in the table of an ENI. */
function routePlace({ table, dst, shown }: ObservedRoute): ConflictPlace {
  const isOfPod = isHostPrefix(dst) && !isEniTable(table);
  return { table, shown, ...(isOfPod && { pod: dst }) };
}

/** A planned rule that selects one address serves one Pod, but for that of an ENI's own address. */
function podOfRule({ priority, src, dst }: ObservedRule): { readonly pod?: string } {
  const prefix = src ?? dst;
  return priority !== PRIORITY.fromEniPrimary && isHostPrefix(prefix) ? { pod: prefix } : {};
}

function ourTables(desired: HostState): ReadonlySet<number> {
  const tables = [...desired.rules, ...desired.routes].map((item: RuleState | RouteState) => item.table);
  return new Set([TABLE_POD_ROUTES, ...tables.filter(isOurTable)]);
}

function vethAddress({ prefix, ifname }: AddressState): Conflict {
  return {
    kind: 'address',
    message: `${ifname} has the IPv4 address ${prefix}: its Pod could forge sources; delete the address and stop what adds it`,
  };
}

function bridgeAddress({ prefix, ifname }: AddressState): Conflict {
  return {
    kind: 'address',
    message: `${ifname} has ${prefix}, which is in no block of this node: packets to that network stay on the bridge; delete the address and stop what adds it`,
  };
}

function eniAddress({ prefix, ifname, more }: AddressState): Conflict {
  const peer = more?.address === undefined ? '' : ` with the other end ${more.address}`;
  return {
    kind: 'address',
    message: `${ifname} has ${prefix}${peer}, whose connected route leads the node's traffic out of the ENI; configure NetworkManager, cloud-init or the DHCP client to leave ${ifname} alone`,
  };
}
