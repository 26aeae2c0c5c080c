import { SCOPES } from '../netlink/render-arguments.ts';
import { ROUTE_TYPES, routeDetails } from '../netlink/render-route.ts';
import { ruleAction, ruleDetails } from '../netlink/render-rule.ts';
import type { Rtattr } from '../netlink/rtattr.ts';
import {
  IFA_F_DADFAILED,
  IFA_F_DEPRECATED,
  IFA_F_HOMEADDRESS,
  IFA_F_MANAGETEMPADDR,
  IFA_F_MCAUTOJOIN,
  IFA_F_NODAD,
  IFA_F_NOPREFIXROUTE,
} from '../netlink/uapi/if-addr.ts';
import type { SysctlKey } from '../sysctl/sysctl-key.ts';
import { sysctlName } from '../sysctl/sysctl-key.ts';
import { addressFlags, isMadeAgain } from './address-change.ts';
import { type PortProperties, renderPort } from './bridge-port.ts';
import type { AddressState, FilterState, NeighState, RouteState, RuleState } from './desired.ts';
import { hex } from './eni-mark.ts';
import { type FlowtableOperation, flowtableCommandsOf, inverseOfFlowtable } from './flowtable-operation.ts';
import { familyOf, prefixLength } from './ip-prefix.ts';
import { nftDeleteCommands } from './nft-replace.ts';
import { FLOW_FILTER, FLOW_PROGRAM_NAME, FLOWTABLE_TABLE, NFT_TABLE, RTPROT_TKE_ENI, TABLE_MAIN } from './numbers.ts';

/** Properties of a link that operations change. */
export type LinkProperties = {
  readonly up?: boolean;
  readonly mtu?: number;
  readonly group?: number;
  readonly mac?: string;
  /** False: IFF_NOARP is set. */
  readonly arp?: boolean;
  /** Ifindex of the bridge, bond or VRF that the link is in; 0 for none. */
  readonly master?: number;
  /** True: IFF_PROMISC is set. */
  readonly promisc?: boolean;
  readonly ifalias?: string;
};

/** A bridge to make; it is down, and has no port. */
export type NewBridge = {
  readonly ifindex: number;
  readonly ifname: string;
  /** Absent: the kernel chooses one, which then follows the ports. */
  readonly mac?: string;
};

/** One change of the kernel, as data. It contains the previous value, so that it can be undone. */
export type Operation =
  | {
      readonly kind: 'set-sysctl';
      readonly key: SysctlKey;
      readonly value: string;
      /** For a link that is made by an earlier operation: as `value`. */
      readonly before: string;
      /** True for a key that a kernel may lack; nothing is done then. */
      readonly isOptional?: true;
      /** True: TCP connections that live are marked first, so that they go on with the new value; nothing is done if they cannot be. */
      readonly keepsConnections?: true;
    }
  | {
      readonly kind: 'set-link';
      readonly ifindex: number;
      readonly ifname: string;
      readonly change: LinkProperties;
      readonly before: LinkProperties;
    }
  | { readonly kind: 'make-bridge' | 'delete-bridge'; readonly bridge: NewBridge }
  | {
      readonly kind: 'set-port';
      readonly ifindex: number;
      readonly ifname: string;
      readonly change: PortProperties;
      readonly before: PortProperties;
    }
  | {
      readonly kind: 'add-address';
      readonly address: AddressState;
      /** The same address with another attribute, which is changed, or goes. */
      readonly before?: AddressState;
    }
  | { readonly kind: 'delete-address'; readonly address: AddressState }
  | {
      readonly kind: 'replace-route';
      readonly route: RouteState;
      /** What stands in its place. */
      readonly before?: RouteState;
      /** More of ours that stand there, in the order of the kernel, which uses the first. They are deleted. */
      readonly twins?: readonly RouteState[];
    }
  | { readonly kind: 'delete-route'; readonly route: RouteState }
  | {
      readonly kind: 'add-rule';
      readonly rule: RuleState;
      /** True: one with more to it is there, which the kernel may take for the same; then it adds the rule all the same. */
      readonly isBesideTwin?: true;
    }
  | {
      readonly kind: 'delete-rule';
      readonly rule: RuleState;
      /**
       * Planned rules that come before it and that a request to delete it matches too: the kernel deletes the first match. They
       * are added once more, behind it, and then the kernel deletes each of them and it. Absent: none.
       */
      readonly keeps?: readonly RuleState[];
    }
  | { readonly kind: 'replace-neigh'; readonly neigh: NeighState; readonly before?: NeighState }
  | { readonly kind: 'delete-neigh'; readonly neigh: NeighState }
  | { readonly kind: 'attach-filter' | 'detach-filter'; readonly filter: FilterState }
  | { readonly kind: 'load-nft'; readonly commands: string; readonly before?: string }
  | FlowtableOperation;

/** Returns the operation that undoes `operation`. */
export function inverseOf(operation: Operation): Operation {
  switch (operation.kind) {
    case 'set-sysctl': {
      const { keepsConnections: _done, ...rest } = operation;
      return { ...rest, value: operation.before, before: operation.value };
    }
    case 'set-link':
      return { ...operation, change: operation.before, before: operation.change };
    case 'make-bridge':
      return { ...operation, kind: 'delete-bridge' };
    case 'delete-bridge':
      return { ...operation, kind: 'make-bridge' };
    case 'set-port':
      return { ...operation, change: operation.before, before: operation.change };
    case 'add-address':
      return operation.before === undefined
        ? { kind: 'delete-address', address: operation.address }
        : { kind: 'add-address', address: operation.before, before: operation.address };
    case 'delete-address':
      return { ...operation, kind: 'add-address' };
    case 'replace-route':
      return operation.before === undefined
        ? { kind: 'delete-route', route: operation.route }
        : { kind: 'replace-route', route: operation.before, before: operation.route };
    case 'delete-route':
      return { kind: 'replace-route', route: operation.route };
    case 'add-rule':
      return { kind: 'delete-rule', rule: operation.rule };
    case 'delete-rule':
      return { kind: 'add-rule', rule: operation.rule };
    case 'replace-neigh':
      return operation.before === undefined
        ? { kind: 'delete-neigh', neigh: operation.neigh }
        : { kind: 'replace-neigh', neigh: operation.before, before: operation.neigh };
    case 'delete-neigh':
      return { kind: 'replace-neigh', neigh: operation.neigh };
    case 'attach-filter':
      return { ...operation, kind: 'detach-filter' };
    case 'detach-filter':
      return { ...operation, kind: 'attach-filter' };
    case 'load-nft':
      return { kind: 'load-nft', commands: operation.before ?? nftDeleteCommands(), before: operation.commands };
    case 'replace-flowtable':
    case 'delete-flowtable':
    case 'add-flow-devices':
    case 'delete-flow-devices':
      return inverseOfFlowtable(operation);
  }
}

/** Renders the equivalent shell command: `ip …`, `tc …`, `sysctl …` or `nft …`. */
export function renderOperation(operation: Operation): string {
  switch (operation.kind) {
    case 'set-sysctl':
      return `sysctl -w ${sysctlName(operation.key)}=${operation.value}`;
    case 'set-link':
      return `ip link set dev ${operation.ifname}${linkArguments(operation.change)}`;
    case 'make-bridge': {
      const { ifname, ifindex, mac } = operation.bridge;
      return `ip link add ${ifname} index ${ifindex}${mac === undefined ? '' : ` address ${mac}`} type bridge`;
    }
    case 'delete-bridge':
      return `ip link del dev ${operation.bridge.ifname}`;
    case 'set-port':
      return `ip link set dev ${operation.ifname} type bridge_slave ${renderPort(operation.change)}`;
    case 'add-address':
      return renderAddition(operation);
    case 'delete-address':
      return `${ip(operation.address.prefix)} address del ${operation.address.prefix} dev ${operation.address.ifname}`;
    case 'replace-route':
      return `${ip(operation.route.dst)} route replace ${renderRoute(operation.route)}`;
    case 'delete-route':
      return `${ip(operation.route.dst)} route del ${renderRoute(operation.route)}`;
    case 'add-rule':
      return `ip -${operation.rule.family} rule add ${renderRule(operation.rule)}`;
    case 'delete-rule':
      return `ip -${operation.rule.family} rule del ${renderRule(operation.rule)}`;
    case 'replace-neigh':
      return `${ip(operation.neigh.dst)} neigh replace ${neighArguments(operation.neigh)} nud permanent`;
    case 'delete-neigh':
      return `${ip(operation.neigh.dst)} neigh del ${neighArguments(operation.neigh)}`;
    case 'attach-filter':
      return `tc filter replace ${filterArguments(operation.filter)} direct-action pinned ${FLOW_PROGRAM_NAME[operation.filter.program]}`;
    case 'detach-filter':
      return `tc filter del ${filterArguments(operation.filter)}`;
    case 'load-nft':
      return `nft -f - <<'EOF'\n${operation.commands}EOF`;
    case 'replace-flowtable':
    case 'delete-flowtable':
    case 'add-flow-devices':
    case 'delete-flow-devices':
      return `nft -f - <<'EOF'\n${flowtableCommandsOf(operation)}EOF`;
  }
}

/** Renders the command in one short line: of nftables without the table's content, which has a line for each ENI. */
export function summarizeOperation(operation: Operation): string {
  switch (operation.kind) {
    case 'load-nft':
      return `nft -f - # table inet ${NFT_TABLE}`;
    case 'replace-flowtable':
    case 'delete-flowtable':
    case 'add-flow-devices':
    case 'delete-flow-devices':
      return `nft -f - # table inet ${FLOWTABLE_TABLE}`;
    default:
      return renderOperation(operation);
  }
}

/** Renders a route in the syntax of ip(8). */
export function renderRoute(route: RouteState, protocol: number = RTPROT_TKE_ENI): string {
  const { more = {} } = route;
  const type = more.type === undefined ? route.type : ROUTE_TYPES[more.type as keyof typeof ROUTE_TYPES];
  return [
    ...(type === undefined ? [] : [type]),
    prefixLength(route.dst) === 0 ? 'default' : route.dst,
    ...(more.src === undefined ? [] : [`from ${more.src}`]),
    ...(more.tos === undefined ? [] : [`tos ${hex(more.tos)}`]),
    ...(route.gateway === undefined ? [] : [`via ${route.gateway}`]),
    ...(more.via === undefined ? [] : [`via inet6 ${more.via}`]),
    ...(type === undefined && route.oif !== 0 ? [`dev ${route.oifname}`] : []),
    ...(route.table === TABLE_MAIN ? [] : [`table ${route.table}`]),
    `proto ${protocol}`,
    ...(route.scope === undefined ? [] : [`scope ${route.scope}`]),
    ...(more.scope === undefined ? [] : [`scope ${more.scope}`]),
    ...(route.prefsrc === undefined ? [] : [`src ${route.prefsrc}`]),
    ...(route.metric === undefined ? [] : [`metric ${route.metric}`]),
    ...routeDetails(more, (ifindex) => `if${ifindex}`),
    ...unknownAttributes(more.unknown),
  ].join(' ');
}

/** Renders a rule in the syntax of ip(8). */
export function renderRule(rule: RuleState, protocol: number = RTPROT_TKE_ENI): string {
  const { more = {} } = rule;
  const { tos, fwmask, iifname, oifname, flow, suppressPrefixlength, suppressIfgroup } = more;
  return [
    ...(more.flags === undefined ? [] : ['not']),
    `pref ${rule.priority}`,
    ...(rule.src === undefined ? [] : [`from ${rule.src}`]),
    ...(rule.dst === undefined ? [] : [`to ${rule.dst}`]),
    ...(rule.fwmark === undefined ? [] : [`fwmark ${hex(rule.fwmark)}/${hex(rule.fwmask ?? 0xffffffff)}`]),
    ...(fwmask === undefined ? [] : [`fwmark 0/${hex(fwmask)}`]),
    ...(tos === undefined ? [] : [`tos ${hex(tos)}`]),
    ...(iifname === undefined ? [] : [`iif ${iifname}`]),
    ...(oifname === undefined ? [] : [`oif ${oifname}`]),
    ...ruleDetails(more),
    ...ruleAction(more, rule.table === TABLE_MAIN ? 'main' : rule.table),
    `proto ${protocol}`,
    ...(flow === undefined ? [] : [`realms ${flow}`]),
    ...(suppressPrefixlength === undefined ? [] : [`suppress_prefixlength ${suppressPrefixlength}`]),
    ...(suppressIfgroup === undefined ? [] : [`suppress_ifgroup ${suppressIfgroup}`]),
    ...(more.tunId === undefined ? [] : [`tun_id 0x${Buffer.from(more.tunId).toString('hex')}`]),
    ...unknownAttributes(more.unknown),
  ].join(' ');
}

/** ip(8) has no words for them. */
function unknownAttributes(unknown: readonly Rtattr[] = []): readonly string[] {
  return unknown.map(({ type }) => `attribute ${type}`);
}

function ip(prefix: string): string {
  return familyOf(prefix) === 4 ? 'ip' : 'ip -6';
}

function linkArguments({ mac, mtu, group, ifalias, master, promisc, arp, up }: LinkProperties): string {
  return [
    ...(mac === undefined ? [] : [` address ${mac}`]),
    ...(mtu === undefined ? [] : [` mtu ${mtu}`]),
    ...(group === undefined ? [] : [` group ${group}`]),
    ...(ifalias === undefined ? [] : [` alias ${ifalias}`]),
    ...(master === undefined ? [] : [master === 0 ? ' nomaster' : ` master if${master}`]),
    ...(promisc === undefined ? [] : [promisc ? ' promisc on' : ' promisc off']),
    ...(arp === undefined ? [] : [arp ? ' arp on' : ' arp off']),
    ...(up === undefined ? [] : [up ? ' up' : ' down']),
  ].join('');
}

function renderAddition({ address, before }: Operation & { readonly kind: 'add-address' }): string {
  const command = `${ip(address.prefix)} address`;
  const add = renderAddress(address);
  if (before === undefined) return `${command} add ${add}`;
  if (!isMadeAgain(address, before)) return `${command} replace ${add}`;
  return `${command} del ${before.prefix} dev ${before.ifname} && ${command} add ${add}`;
}

/** Renders an address in the syntax of ip(8). */
export function renderAddress({ prefix, ifname, more = {} }: AddressState): string {
  const { address: peer, scope, broadcast, cacheinfo } = more;
  const flags = more.flags ?? addressFlags(prefix);
  const lifetime = (seconds: number): string => (seconds === 0xffff_ffff ? 'forever' : `${seconds}`);
  return [
    ...(peer === undefined ? [prefix] : [prefix.split('/')[0], 'peer', `${peer}/${prefixLength(prefix)}`]),
    ...(broadcast === undefined ? [] : [`broadcast ${broadcast}`]),
    `dev ${ifname}`,
    ...(scope === undefined ? [] : [`scope ${SCOPES[scope as keyof typeof SCOPES] ?? scope}`]),
    ...(cacheinfo === undefined
      ? []
      : [`valid_lft ${lifetime(cacheinfo.valid)} preferred_lft ${lifetime(cacheinfo.preferred)}`]),
    ...ADDRESS_WORDS.filter(([flag]) => (flags & flag) !== 0).map(([, word]) => word),
  ].join(' ');
}

const ADDRESS_WORDS = [
  [IFA_F_NODAD, 'nodad'],
  [IFA_F_NOPREFIXROUTE, 'noprefixroute'],
  [IFA_F_DEPRECATED, 'deprecated'],
  [IFA_F_DADFAILED, 'dadfailed'],
  [IFA_F_HOMEADDRESS, 'home'],
  [IFA_F_MANAGETEMPADDR, 'mngtmpaddr'],
  [IFA_F_MCAUTOJOIN, 'autojoin'],
] as const;

function filterArguments({ ifname, direction }: FilterState): string {
  const { priority, handle } = FLOW_FILTER;
  return `dev ${ifname} ${direction} pref ${priority} protocol all handle ${handle} bpf`;
}

function neighArguments({ dst, lladdr, ifname }: NeighState): string {
  return `${dst} lladdr ${lladdr} dev ${ifname}`;
}
