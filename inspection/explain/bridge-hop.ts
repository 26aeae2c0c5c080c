import { BRIDGE_IFINDEX } from '../../dataplane/numbers.ts';
import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import { bridgeCallIptables, sysctlName } from '../../sysctl/sysctl-key.ts';
import { linkId, sysctlId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import { findBridgeFilterFault } from '../faults/find-bridge-filter-fault.ts';
import { findLinkObstacles } from '../faults/find-link-obstacles.ts';
import type { BridgeView } from '../model/gr-view.ts';
import type { ModelPod } from '../model/node-model.ts';
import { prefixContains } from '../node/prefix-contains.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Hop } from './explanation.ts';
import { findForwardFault } from './find-forward-fault.ts';
import { hopOf, mostSevere } from './hop.ts';

const CALL_IPTABLES = sysctlName(bridgeCallIptables());

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
  const { bridge, facts, assessment } = context;
  const { link } = bridge;
  const ports = [...(bridged === undefined ? [] : [bridged.from]), view];
  const names = ports.map(({ veth, title }) => veth?.ifname ?? `that of ${title}`);
  const title = `bridge ${bridge.name}, ${names.length > 1 ? `from port ${names.join(' to port ')}` : `port ${names.join()}`}`;
  const fields = { kind: 'link' as const, element: linkId(link?.ifindex ?? BRIDGE_IFINDEX), title };
  const cause = bridgeFault(context, bridged !== undefined);
  if (link === undefined) return hopOf(fields, cause);
  const calls = facts.host.sysctls.get(CALL_IPTABLES);
  const details = [
    `${(link.flags & IFF_UP) === 0 ? 'down' : 'up'}, mtu ${link.mtu}, mac ${link.address ?? 'none'}, ${bridge.prefixes.join(', ') || 'no address'}`,
    `${CALL_IPTABLES} = ${calls ?? 'not there'}`,
    bridged === undefined ? sourceText(view) : 'between ports: no rule and no route of the node leads it',
  ];
  const through = bridged === undefined || calls !== '1' ? undefined : passingFault(context, bridge, bridged);
  const fault = mostSevere(
    cause,
    ...ports.map(({ veth }) => assessment.about(linkId(veth?.ifindex ?? 0), ['bridge-port-changed'])),
    ...findLinkObstacles(
      facts.host,
      { link, title: link.ifname, subjects: [fields.element], prefix: '' },
      context.pods,
    ),
    assessment.about(fields.element, ['mtu-mismatch']),
    assessment.about(sysctlId(CALL_IPTABLES), ['br-netfilter']) ?? findBridgeFilterFault(facts.host, bridge.name),
    through,
  );
  return hopOf({ ...fields, details }, fault);
}

/** Says which source the Pod gets to see where kube-proxy translates it. */
function sourceText({ gr, title }: ModelPod): string {
  return `NodePort requests that kube-proxy masquerades come to ${title} from ${gr?.gateway}, the address of the link by which they leave`;
}

/**
 * Returns what is wrong with the bridge itself; undefined when packets of the Pod's block pass it.
 * @param isBetweenPorts whether the packet needs nothing of the bridge but that it is up
 */
export function bridgeFault({ bridge, assessment }: ExplainContext, isBetweenPorts = false): Finding | undefined {
  const { link } = bridge;
  const found = assessment.about(linkId(link?.ifindex ?? BRIDGE_IFINDEX), ['bridge-missing', 'bridge-changed']);
  const isUp = link !== undefined && (link.flags & IFF_UP) !== 0;
  return found && { ...found, ...(isBetweenPorts && isUp && { severity: 'warning' as const }) };
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
