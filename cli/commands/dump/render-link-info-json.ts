import type { LinkMessage } from '../../../netlink/link-message.ts';
import type { IpNames, IpObject } from './ip-names.ts';

/** Renders "linkinfo" of `ip -j -d link`; undefined for a link without a kind. */
export function renderLinkInfoJson(link: LinkMessage, names: IpNames): IpObject | undefined {
  const { kind, slaveKind } = link;
  if (kind === undefined && slaveKind === undefined) return undefined;
  const data = renderKindJson(link, names);
  return {
    ...(kind === undefined ? {} : { info_kind: kind }),
    ...(data === undefined ? {} : { info_data: data }),
    ...(slaveKind === undefined ? {} : { info_slave_kind: slaveKind }),
    ...(link.bridgePort === undefined ? {} : { info_slave_data: renderBridgePortJson(link.bridgePort, names) }),
  };
}

function renderKindJson(link: LinkMessage, names: IpNames): IpObject | undefined {
  if (link.bridge !== undefined) return renderBridgeJson(link.bridge);
  if (link.vxlan !== undefined) return renderVxlan(link.vxlan, names);
  if (link.macvlan !== undefined) return renderMacvlan(link.macvlan);
  return link.tun === undefined ? undefined : renderTun(link.tun, names);
}

/** Leaves out members that the kernel did not report. */
function present(object: IpObject): IpObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/** Names of MACVLAN_MODE_*, by number. */
const MACVLAN_MODES: Readonly<Record<number, string>> = {
  1: 'private',
  2: 'vepa',
  4: 'bridge',
  8: 'passthru',
  16: 'source',
};
const MACVLAN_FLAG_NOPROMISC = 1;
const MACVLAN_FLAG_NODST = 2;

function renderMacvlan(macvlan: NonNullable<LinkMessage['macvlan']>): IpObject {
  const { mode, flags = 0 } = macvlan;
  return present({
    mode: mode === undefined ? undefined : (MACVLAN_MODES[mode] ?? '<unknown>'),
    ...((flags & MACVLAN_FLAG_NOPROMISC) === 0 ? {} : { nopromisc: true }),
    ...((flags & MACVLAN_FLAG_NODST) === 0 ? {} : { nodst: true }),
    bcqueuelen: macvlan.bcQueueLen,
    usedbcqueuelen: macvlan.bcQueueLenUsed,
  });
}

const TUN_TYPES: Readonly<Record<number, string>> = { 1: 'tun', 2: 'tap' };

function renderTun(tun: NonNullable<LinkMessage['tun']>, names: IpNames): IpObject {
  const { type, owner, group, multiQueue } = tun;
  return present({
    type: type === undefined ? undefined : (TUN_TYPES[type] ?? 'UNKNOWN'),
    pi: bool(tun.pi),
    vnet_hdr: bool(tun.vnetHdr),
    multi_queue: bool(multiQueue),
    ...(multiQueue === 1 ? { numqueues: tun.numQueues, numdisabled: tun.numDisabledQueues } : {}),
    persist: bool(tun.persist),
    user: owner === undefined ? undefined : names.user(owner),
    group: group === undefined ? undefined : names.userGroup(group),
  });
}

/** Names of VXLAN_DF_*, by number. */
const VXLAN_DF: readonly string[] = ['unset', 'set', 'inherit'];
const NO_ADDRESS: readonly (string | undefined)[] = ['0.0.0.0', '::'];

function renderVxlan(vxlan: NonNullable<LinkMessage['vxlan']>, names: IpNames): IpObject {
  const isExternal = (vxlan.collectMetadata ?? 0) !== 0;
  return present({
    ...(isExternal ? { external: true } : {}),
    ...(vxlan.vnifilter === 1 ? { vnifilter: true } : {}),
    id: vxlan.id,
    ...endpoint('group', 'remote', vxlan.group),
    ...endpoint('group6', 'remote6', vxlan.group6),
    local: NO_ADDRESS.includes(vxlan.local) ? undefined : vxlan.local,
    local6: NO_ADDRESS.includes(vxlan.local6) ? undefined : vxlan.local6,
    link: vxlan.link === undefined || vxlan.link === 0 ? undefined : names.link(vxlan.link),
    port_range: vxlan.portRange,
    port: vxlan.port,
    learning: bool(vxlan.learning),
    proxy: trueOnly(vxlan.proxy),
    rsc: trueOnly(vxlan.rsc),
    l2miss: trueOnly(vxlan.l2miss),
    l3miss: trueOnly(vxlan.l3miss),
    tos:
      vxlan.tos === undefined || vxlan.tos === 0
        ? undefined
        : vxlan.tos === 1
          ? 'inherit'
          : `0x${vxlan.tos.toString(16)}`,
    ...(vxlan.ttlInherit === 1 ? { ttl: 'inherit' } : { ttl: vxlan.ttl }),
    df: vxlan.df === undefined ? undefined : VXLAN_DF[vxlan.df],
    label: vxlan.label === undefined || vxlan.label === 0 ? undefined : `0x${vxlan.label.toString(16)}`,
    ageing: vxlan.ageing,
    limit: vxlan.limit === 0 ? undefined : vxlan.limit,
    udp_csum: bool(vxlan.udpCsum),
    udp_zero_csum6_tx: bool(vxlan.udpZeroCsum6Tx),
    udp_zero_csum6_rx: bool(vxlan.udpZeroCsum6Rx),
    remcsum_tx: trueOnly(vxlan.remcsumTx),
    remcsum_rx: trueOnly(vxlan.remcsumRx),
    gbp: vxlan.gbp,
    gpe: vxlan.gpe,
  });
}

/** Renders the address of a VXLAN: a multicast address is its group, any other address its remote end. */
function endpoint(group: string, remote: string, address: string | undefined): IpObject {
  if (address === undefined || NO_ADDRESS.includes(address)) return {};
  const isMulticast = address.includes(':') ? /^ff/i.test(address) : /^(22[4-9]|23\d)\./.test(address);
  return { [isMulticast ? group : remote]: address };
}

/** Turns 0 and 1 into false and true. */
function bool(value: number | undefined): boolean | undefined {
  return value === undefined ? undefined : value !== 0;
}

function trueOnly(value: number | undefined): true | undefined {
  return value === undefined || value === 0 ? undefined : true;
}

/** Ticks of a second: the kernel reports timers in hundredths of a second, `ip` prints seconds. */
const TICKS = 100;
const BOOLOPT_NO_LL_LEARN = 1;
const BOOLOPT_MCAST_VLAN_SNOOPING = 2;

/** Renders "info_data" of a bridge as `ip -j -d link` does. @see iproute2 ip/iplink_bridge.c */
function renderBridgeJson(bridge: NonNullable<LinkMessage['bridge']>): IpObject {
  const options = bridge.multiBoolopt;
  return present({
    forward_delay: bridge.forwardDelay,
    hello_time: bridge.helloTime,
    max_age: bridge.maxAge,
    ageing_time: bridge.ageingTime,
    stp_state: bridge.stpState,
    priority: bridge.bridgePriority,
    vlan_filtering: bridge.vlanFiltering,
    vlan_protocol: bridge.vlanProtocol === undefined ? undefined : ethertype(bridge.vlanProtocol),
    bridge_id: bridgeId(bridge.bridgeId),
    root_id: bridgeId(bridge.rootId),
    root_port: bridge.rootPort,
    root_path_cost: bridge.rootPathCost,
    topology_change: bridge.topologyChange,
    topology_change_detected: bridge.topologyChangeDetected,
    hello_timer: seconds(bridge.helloTimer),
    tcn_timer: seconds(bridge.tcnTimer),
    topology_change_timer: seconds(bridge.topologyChangeTimer),
    gc_timer: seconds(bridge.gcTimer),
    vlan_default_pvid: bridge.vlanDefaultPvid,
    vlan_stats_enabled: bridge.vlanStatsEnabled,
    vlan_stats_per_port: bridge.vlanStatsPerPort,
    group_fwd_mask: bridge.groupFwdMask === undefined ? undefined : sharpHex(bridge.groupFwdMask),
    group_addr: bridge.groupAddr,
    mcast_snooping: bridge.mcastSnooping,
    no_linklocal_learn: options === undefined ? undefined : option(options.value, BOOLOPT_NO_LL_LEARN),
    mcast_vlan_snooping: options === undefined ? undefined : option(options.value, BOOLOPT_MCAST_VLAN_SNOOPING),
    mcast_router: bridge.mcastRouter,
    mcast_query_use_ifaddr: bridge.mcastQueryUseIfaddr,
    mcast_querier: bridge.mcastQuerier,
    mcast_hash_elasticity: bridge.mcastHashElasticity,
    mcast_hash_max: bridge.mcastHashMax,
    mcast_last_member_cnt: bridge.mcastLastMemberCnt,
    mcast_startup_query_cnt: bridge.mcastStartupQueryCnt,
    mcast_last_member_intvl: bridge.mcastLastMemberIntvl,
    mcast_membership_intvl: bridge.mcastMembershipIntvl,
    mcast_querier_intvl: bridge.mcastQuerierIntvl,
    mcast_query_intvl: bridge.mcastQueryIntvl,
    mcast_query_response_intvl: bridge.mcastQueryResponseIntvl,
    mcast_startup_query_intvl: bridge.mcastStartupQueryIntvl,
    mcast_stats_enabled: bridge.mcastStatsEnabled,
    mcast_igmp_version: bridge.mcastIgmpVersion,
    mcast_mld_version: bridge.mcastMldVersion,
    nf_call_iptables: bridge.nfCallIptables,
    nf_call_ip6tables: bridge.nfCallIp6tables,
    nf_call_arptables: bridge.nfCallArptables,
  });
}

/** Names of BR_STATE_*, by number. */
const PORT_STATES: readonly string[] = ['disabled', 'listening', 'learning', 'forwarding', 'blocking'];

/** Renders "info_slave_data" of a bridge port. @see iproute2 ip/iplink_bridge_slave.c */
function renderBridgePortJson(port: NonNullable<LinkMessage['bridgePort']>, names: IpNames): IpObject {
  return present({
    state: port.state === undefined ? undefined : (PORT_STATES[port.state] ?? String(port.state)),
    priority: port.priority,
    cost: port.cost,
    hairpin: bool(port.mode),
    guard: bool(port.guard),
    root_block: bool(port.protect),
    fastleave: bool(port.fastLeave),
    learning: bool(port.learning),
    flood: bool(port.unicastFlood),
    id: hex(port.id),
    no: hex(port.no),
    designated_port: port.designatedPort,
    designated_cost: port.designatedCost,
    bridge_id: bridgeId(port.bridgeId),
    root_id: bridgeId(port.rootId),
    hold_timer: seconds(port.holdTimer),
    message_age_timer: seconds(port.messageAgeTimer),
    forward_delay_timer: seconds(port.forwardDelayTimer),
    topology_change_ack: port.topologyChangeAck,
    config_pending: port.configPending,
    proxy_arp: bool(port.proxyarp),
    proxy_arp_wifi: bool(port.proxyarpWifi),
    multicast_router: port.multicastRouter,
    mcast_flood: bool(port.mcastFlood),
    bcast_flood: bool(port.bcastFlood),
    mcast_to_unicast: bool(port.mcastToUcast),
    neigh_suppress: bool(port.neighSuppress),
    group_fwd_mask: port.groupFwdMask === undefined ? undefined : sharpHex(port.groupFwdMask),
    group_fwd_mask_str: port.groupFwdMask === undefined ? undefined : hex(port.groupFwdMask),
    vlan_tunnel: bool(port.vlanTunnel),
    isolated: bool(port.isolated),
    locked: bool(port.locked),
    mab: bool(port.mab),
    backup_port: port.backupPort === undefined ? undefined : names.link(port.backupPort),
  });
}

function seconds(ticks: number | undefined): number | undefined {
  return ticks === undefined ? undefined : ticks / TICKS;
}

function option(value: number, bit: number): number {
  return (value & bit) === 0 ? 0 : 1;
}

function hex(value: number | undefined): string | undefined {
  return value === undefined ? undefined : `0x${value.toString(16)}`;
}

/** Formats a number as printf's %#x does, which prints zero without '0x'. */
function sharpHex(value: number): string {
  return value === 0 ? '0' : `0x${value.toString(16)}`;
}

function ethertype(protocol: number): string {
  return protocol === 0x8100 ? '802.1Q' : protocol === 0x88a8 ? '802.1ad' : `0x${protocol.toString(16)}`;
}

/** Formats a bridge id as ether_ntoa(3) does, which `ip` uses: no leading zero in a byte. */
function bridgeId(id: string | undefined): string | undefined {
  return id?.replaceAll(/(?<=[.:])0(?=[0-9a-f])/g, '');
}
