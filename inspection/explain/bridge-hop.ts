import { oddPort, plannedPort, renderPort } from '../../dataplane/bridge-port.ts';
import { BRIDGE_IFINDEX } from '../../dataplane/numbers.ts';
import { bridgePortOf } from '../../netlink/link-message.ts';
import { IFF_PROMISC, IFF_UP } from '../../netlink/uapi/if-link.ts';
import { bridgeCallIptables, sysctlName } from '../../sysctl/sysctl-key.ts';
import { finding } from '../catalogue/catalogue.ts';
import { linkId, podId, sysctlId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import { findLinkObstacles } from '../faults/find-link-obstacles.ts';
import type { BridgeView } from '../model/gr-view.ts';
import type { ModelPod } from '../model/node-model.ts';
import { prefixContains } from '../node/prefix-contains.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Hop } from './explanation.ts';
import { findForwardFault } from './find-forward-fault.ts';
import { hopOf, mostSevere } from './hop.ts';

const REPAIR = 'tke-eni repair';

/** Two Pods of one bridge, of which one sends to the other. */
type Bridged = { readonly from: ModelPod; readonly src: string; readonly dst: string; readonly isFirst: boolean };

/** Reports whether a Pod is on the bridge. */
export function isOnBridge({ gr }: ModelPod): boolean {
  return gr?.wiring === 'bridge';
}

/** Reports whether one Pod reaches the other by the bridge alone, without any rule or route of the node. */
export function isBridged(from: ModelPod, to: ModelPod): boolean {
  return isOnBridge(from) && isOnBridge(to) && from.gr?.cidr === to.gr?.cidr;
}

/**
 * Checks the bridge and the port of a Pod: it is there, up, with the first address of the Pod's block, and the Pod's host
 * interface is a port of it with hairpin.
 * @param bridged set where the packet comes from another port and not from the node
 */
export function bridgeHop(context: ExplainContext, view: ModelPod, bridged?: Bridged): Hop {
  const { bridge, facts } = context;
  const { link } = bridge;
  const ports = [...(bridged === undefined ? [] : [bridged.from]), view];
  const names = ports.map(({ veth, title }) => veth?.ifname ?? `that of ${title}`);
  const title = `bridge ${bridge.name}, ${names.length > 1 ? `from port ${names.join(' to port ')}` : `port ${names.join()}`}`;
  const fields = { kind: 'link' as const, element: linkId(link?.ifindex ?? BRIDGE_IFINDEX), title };
  const cause = bridgeFault(bridge, view, bridged !== undefined);
  if (link === undefined) return hopOf(fields, cause);
  const calls = facts.host.sysctls.get(sysctlName(bridgeCallIptables()));
  const details = [
    `${(link.flags & IFF_UP) === 0 ? 'down' : 'up'}, mtu ${link.mtu}, mac ${link.address ?? 'none'}, ${bridge.prefixes.join(', ') || 'no address'}`,
    `${sysctlName(bridgeCallIptables())} = ${calls ?? 'not there'}`,
    bridged === undefined ? sourceText(view) : 'between ports: no rule and no route of the node leads it',
  ];
  const through = bridged === undefined || calls !== '1' ? undefined : passingFault(context, bridge, bridged);
  const fault = mostSevere(
    cause,
    ...ports.map((port) => portFault(bridge, port)),
    ...findLinkObstacles(
      facts.host,
      { link, title: link.ifname, subjects: [fields.element], prefix: '' },
      context.pods,
    ),
    promiscFault(bridge),
    mtuFault(bridge, view),
    calls === '1' ? undefined : callsFault(bridge, calls),
    through,
  );
  return hopOf({ ...fields, details }, fault);
}

/** Says which source the Pod gets to see where kube-proxy translates it. */
function sourceText({ gr, title }: ModelPod): string {
  return `NodePort requests that kube-proxy masquerades come to ${title} from ${gr?.gateway}, the address of the link by which they leave`;
}

/**
 * Finds what is wrong with the bridge itself; undefined when packets of the Pod's block pass it.
 * @param isBetweenPorts whether the packet needs no address of the bridge
 */
export function bridgeFault(
  { name, link, prefixes }: BridgeView,
  { gr, title }: ModelPod,
  isBetweenPorts = false,
): Finding | undefined {
  const subjects = [linkId(link?.ifindex ?? BRIDGE_IFINDEX)];
  if (link === undefined) {
    const what = `there is no bridge ${name}: ${title} is cut off`;
    return finding('bridge-missing', { what, fix: [REPAIR], subjects });
  }
  if ((link.flags & IFF_UP) === 0) {
    const fix = [REPAIR, `ip link set ${link.ifname} up`];
    return finding('bridge-changed', { what: `the bridge ${link.ifname} is down`, fix, subjects });
  }
  const { cidr, gateway } = gr ?? { cidr: '', gateway: '' };
  const wanted = `${gateway}/${cidr.split('/')[1]}`;
  if (gr === undefined || prefixes.some((prefix) => prefix === wanted)) return undefined;
  return finding('bridge-changed', {
    what: `${link.ifname} does not have ${wanted}, the gateway of ${title}`,
    fix: [REPAIR, `ip address add ${wanted} dev ${link.ifname}`],
    subjects,
    ...(isBetweenPorts ? { severity: 'warning' as const } : {}),
  });
}

function portFault(bridge: BridgeView, { veth, title, pod }: ModelPod): Finding | undefined {
  if (veth === undefined || bridge.link === undefined) return undefined;
  const subjects = [linkId(veth.ifindex), podId(pod.key)];
  const { name } = bridge;
  if (veth.master !== bridge.link.ifindex) {
    const what = `${veth.ifname} of ${title} is no port of ${name}`;
    return finding('bridge-port-changed', {
      what,
      fix: [REPAIR, `ip link set ${veth.ifname} master ${name}`],
      subjects,
    });
  }
  const odd = oddPort(bridgePortOf(veth));
  const { hairpin, ...others } = odd;
  const fix = [REPAIR, `ip link set ${veth.ifname} type bridge_slave ${renderPort(plannedPort(odd))}`];
  const port = `port ${veth.ifname} of ${title} has`;
  if (Object.keys(others).length > 0) {
    const what = `${port} ${renderPort(others)}: the Pod does not reach, or is not reached by, other Pods of ${name}`;
    return finding('bridge-port-changed', { what, fix, subjects });
  }
  if (hairpin === undefined) return undefined;
  const what = `${port} hairpin off: the Pod does not reach itself by the address of a Service`;
  return finding('bridge-port-changed', { what, fix, subjects, severity: 'warning' });
}

function promiscFault({ link }: BridgeView): Finding | undefined {
  if (link === undefined || (link.flags & IFF_PROMISC) === 0) return undefined;
  return finding('bridge-changed', {
    what: `${link.ifname} is promiscuous: what a Pod sends to another of this bridge by the address of a Service arrives twice`,
    fix: [REPAIR, `ip link set ${link.ifname} promisc off`],
    subjects: [linkId(link.ifindex)],
    severity: 'warning',
  });
}

function mtuFault({ link }: BridgeView, { veth, title }: ModelPod): Finding | undefined {
  if (link === undefined || veth === undefined || veth.mtu <= link.mtu) return undefined;
  return finding('mtu-mismatch', {
    what: `${title} sends packets of up to ${veth.mtu} bytes, the bridge ${link.ifname} takes ${link.mtu}`,
    fix: [REPAIR, `ip link set ${link.ifname} mtu ${veth.mtu}`],
    subjects: [linkId(link.ifindex)],
  });
}

function callsFault({ name }: BridgeView, value: string | undefined): Finding {
  const setting = sysctlName(bridgeCallIptables());
  const is = value === undefined ? 'br_netfilter is not loaded' : `${setting} is ${value}`;
  return finding('br-netfilter', {
    what: `${is}: a Pod of ${name} that asks another one by the address of a Service gets no answer`,
    fix: [...(value === undefined ? ['modprobe br_netfilter'] : []), REPAIR, `sysctl -w ${setting}=1`],
    subjects: [sysctlId(setting)],
  });
}

/** With br_netfilter firewalls of the node see packets between two ports as forwarded from the bridge to the bridge. */
function passingFault(
  context: ExplainContext,
  { name }: BridgeView,
  { src, dst, isFirst }: Bridged,
): Finding | undefined {
  return findForwardFault(context, { family: 4, src, dst, iifs: [name], oifs: [name], isFirst });
}

/** Reports whether an address is in the block of a Pod, so that the Pod asks for it by ARP instead of its gateway. */
export function isOnLink({ gr }: ModelPod, ip: string): boolean {
  return gr?.wiring === 'bridge' && prefixContains(gr.cidr, ip);
}
