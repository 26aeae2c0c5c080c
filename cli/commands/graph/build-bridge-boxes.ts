import { locateBridge } from '../../../dataplane/locate-bridge.ts';
import { BRIDGE_NAME } from '../../../dataplane/numbers.ts';
import { linkId } from '../../../inspection/catalogue/element-id.ts';
import type { ModelPod } from '../../../inspection/model/node-model.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { ownPrefix } from '../../../netlink/address-message.ts';
import { RT_SCOPE_UNIVERSE } from '../../../netlink/uapi/rtnetlink.ts';
import { plural } from '../../output/plural.ts';
import { isUp, linkRows, linkState } from './build-pod-boxes.ts';
import type { GraphGroup, GraphNode } from './graph.ts';

/** Id of the band of GlobalRoute Pods. */
export const BRIDGE_GROUP = 'bridge';

/** Builds the band of GlobalRoute Pods; undefined where there are none. */
export function buildBridgeGroup(facts: NodeFacts, views: readonly ModelPod[]): GraphGroup | undefined {
  const pods = views.filter(({ isGr }) => isGr);
  if (pods.length === 0) return undefined;
  const blocks = blocksOf(facts, pods);
  const title = blocks.length === 0 ? 'GlobalRoute Pods' : `podCIDR ${blocks.join(', ')}`;
  return { id: BRIDGE_GROUP, kind: 'other', title, subtitle: plural(pods.length, 'Pod') };
}

/** Builds the boxes of GlobalRoute Pods in common: the bridge, where one of them is on it, and the VPC's route of each block. */
export function buildBridgeBoxes(facts: NodeFacts, views: readonly ModelPod[]): readonly GraphNode[] {
  const pods = views.filter(({ isGr }) => isGr);
  if (pods.length === 0) return [];
  return [...bridgeBox(facts, pods), routeBox(facts, pods)];
}

function blocksOf({ agent }: NodeFacts, pods: readonly ModelPod[]): readonly string[] {
  const record = ifKnown(agent)?.node;
  const planned = record === undefined ? undefined : ifKnown(record)?.node.podCidrs;
  const leased = pods.flatMap(({ lease }) => lease?.block?.cidr ?? []);
  return [...new Set([...(planned ?? []).map(({ cidr }) => cidr), ...leased])];
}

function bridgeBox(facts: NodeFacts, pods: readonly ModelPod[]): readonly GraphNode[] {
  const record = ifKnown(facts.agent)?.node;
  const name = (record === undefined ? undefined : ifKnown(record)?.node.bridge?.name) ?? BRIDGE_NAME;
  const { links, addresses } = facts.host;
  const { ifindex, isPresent } = locateBridge(links, name);
  const isNeeded = pods.some(({ lease, hostLink }) => {
    const wiring = lease?.block?.wiring;
    return wiring === undefined ? hostLink?.master === ifindex : wiring === 'bridge';
  });
  const link = links.find((each) => isPresent && each.ifindex === ifindex);
  if (!isNeeded) return [];
  const prefixes = addresses
    .filter((address) => address.ifindex === ifindex && address.scope === RT_SCOPE_UNIVERSE)
    .map(ownPrefix);
  const ports = links.filter(({ master }) => master === ifindex);
  return [
    {
      id: linkId(ifindex),
      kind: 'nic',
      lane: 'marks',
      group: BRIDGE_GROUP,
      title: link?.ifname ?? name,
      lines:
        link === undefined
          ? ['the bridge is not there']
          : [`bridge · ${linkState(link)} · MTU ${link.mtu}`, ...prefixes, `${ports.length} ports`],
      owner: 'ours',
      state: link === undefined ? 'missing' : isUp(link) ? 'ok' : 'broken',
      elements: [linkId(ifindex), ...prefixes.map((prefix) => `address:${prefix.split('/')[0]}`)],
      facts:
        link === undefined
          ? []
          : [
              { title: 'Bridge', rows: linkRows(link, facts) },
              { title: 'Ports', rows: ports.map((port) => `${port.ifname}, ${linkState(port)}`) },
            ],
      findings: [],
    },
  ];
}

function routeBox(facts: NodeFacts, pods: readonly ModelPod[]): GraphNode {
  const record = ifKnown(facts.agent)?.node;
  const primary = record === undefined ? undefined : ifKnown(record)?.node.primary.addresses[0];
  return {
    id: `gateway~${BRIDGE_GROUP}`,
    kind: 'gateway',
    lane: 'vpc',
    group: BRIDGE_GROUP,
    title: 'VPC',
    lines: blocksOf(facts, pods).map((cidr) => `route ${cidr} to ${primary ?? 'this node'}`),
    owner: 'kernel',
    state: 'ok',
    elements: pods.flatMap(({ ips }) => ips.map((ip) => `cloud:${ip}`)),
    facts: [{ title: 'Routes', rows: ['not read on a node: tke-eni cluster shows which nodes lack theirs'] }],
    findings: [],
  };
}
