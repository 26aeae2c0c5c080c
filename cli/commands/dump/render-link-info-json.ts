import type { LinkMessage } from '../../../netlink/link-message.ts';
import type { IpNames, IpObject } from './ip-names.ts';
import { renderBridgeJson, renderBridgePortJson } from './render-bridge-json.ts';

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
