import { type Lease, leaseKey } from '../../../../agent/journal/lease.ts';
import { addressFamily } from '../../../../dataplane/address-family.ts';
import type { HostState, NetState } from '../../../../dataplane/desired.ts';
import { hostVethAlias, hostVethName } from '../../../../dataplane/host-veth-name.ts';
import { anyPrefix, familyOf } from '../../../../dataplane/ip-prefix.ts';
import { linkGroupOf } from '../../../../dataplane/link-group.ts';
import type {
  BridgeNetwork,
  BridgePodNetwork,
  EniNetwork,
  EniPodNetwork,
  NodeNetwork,
  PodCidr,
  PodNetwork,
} from '../../../../dataplane/network.ts';
import { planNode } from '../../../../dataplane/plan-node.ts';
import { planPod } from '../../../../dataplane/plan-pod.ts';
import { blockOf, podCidrOf } from '../../../../dataplane/pod-cidr.ts';
import { neighSpec, routeSpec, ruleSpec } from '../../../../dataplane/to-request.ts';
import { findEnis } from '../../../../inspection/node/find-enis.ts';
import { known, unknown } from '../../../../inspection/node/known.ts';
import { mergeTableNames } from '../../../../inspection/node/merge-table-names.ts';
import type { AgentFacts, NetnsFacts, NodeFacts, PodReading } from '../../../../inspection/node/node-facts.ts';
import type { AddressMessage } from '../../../../netlink/address-message.ts';
import type { LinkMessage } from '../../../../netlink/link-message.ts';
import type { RouteMessage } from '../../../../netlink/route-message.ts';
import type { RuleMessage } from '../../../../netlink/rule-message.ts';
import { sysctlName } from '../../../../sysctl/sysctl-key.ts';
import { NO_TRAFFIC } from '../../../inspection/node/no-traffic.ts';

/** What a made-up node is like. */
export type FixtureNode = {
  readonly enis: number;
  readonly podsPerEni: number;
  /** GlobalRoute Pods on a bridge; none when left out. */
  readonly podsOnBridge?: number;
  /** The block of these; 172.20.0.0/26 when left out. */
  readonly block?: string;
  readonly ruleMode?: 'compact' | 'per-pod';
  readonly families?: readonly (4 | 6)[];
  /** False: nothing but the kernel tells. */
  readonly hasAgent?: boolean;
  /** Name of the Pod with this number; `web-<number>` when left out. */
  readonly podName?: (index: number) => string;
};

/** Makes the facts of a node as the agent would have set it up: no fault in it. The same for the same arguments. */
export function nodeFixture(spec: FixtureNode): NodeFacts {
  const enis = Array.from({ length: spec.enis }, (_, index) => eniNetwork(index, spec.families ?? [4]));
  const ofEnis = enis.flatMap((eni, index) =>
    Array.from({ length: spec.podsPerEni }, (_, pod) => podNetwork(eni, index, index * spec.podsPerEni + pod, spec)),
  );
  const onBridge = Array.from({ length: spec.podsOnBridge ?? 0 }, (_, pod) =>
    bridgePodNetwork(pod, ofEnis.length + pod, spec),
  );
  const pods: readonly PodNetwork[] = [...ofEnis, ...onBridge];
  const node = nodeNetwork(spec);
  const leases = pods.map((pod, index) => leaseOf(pod, index, enis, spec));
  const agent: AgentFacts = {
    journal: {
      leases,
      cooldowns: [],
      enis: enis.map(({ eniId, mac, table, slot }) => ({ eniId, mac, table, slot })),
      supply: {
        nodeName: '10.0.0.4',
        epoch: 7,
        warm: { min: 5, max: 5 },
        enis: enis.map((eni) => ({
          eniId: eni.eniId,
          mac: eni.mac,
          primary: eni.addresses.map(({ ip, gateway }) => ({
            ip,
            gateway,
            family: familyOf(ip),
            subnetCidr: familyOf(ip) === 4 ? `${gateway}/24`.replace('.1/', '.0/') : 'fd00:1::/64',
          })),
          attached: true,
          draining: false,
          addresses: leases.flatMap(({ addresses }) =>
            addresses.flatMap(({ eniId, ...address }) =>
              eniId === eni.eniId ? [{ ...address, state: 'assigned' as const }] : [],
            ),
          ),
        })),
      },
    },
    node: known({ bootId: 'boot', agentRelease: '0.1.0', nodeName: '10.0.0.4', node, enis }),
  };
  const agentFacts = spec.hasAgent === false ? unknown('no /run/tke-eni/journal.db', 'start the agent') : known(agent);
  const host = hostFacts(planNode(node, enis, pods), enis, pods);
  const tableNames = mergeTableNames(new Map(), findEnis(host, agentFacts));
  return {
    host: {
      ...host,
      nft: known({ objects: [], ourTable: planNode(node, enis, pods).nft?.text }),
      legacyIptables: known([]),
      queueListeners: known([]),
      tableNames,
    },
    agent: agentFacts,
    pods: pods.map((pod, index): PodReading => {
      const lease = leases[index];
      return {
        key: leaseKey(pod.key),
        lease: lease === undefined || spec.hasAgent === false ? unknown('no journal', 'start the agent') : known(lease),
        hostIfindex: pod.hostVeth.ifindex,
        inside: known(insideFacts(pod, planPod(node, pod, 2).pod)),
      };
    }),
  };
}

function nodeNetwork(spec: FixtureNode): NodeNetwork {
  return {
    ruleMode: spec.ruleMode ?? 'compact',
    eniMarkMask: 0xff0000,
    rpFilterMode: 'loose',
    egress: 'eni',
    primary: { ifindex: 2, ifname: 'eth0', addresses: ['10.0.0.4'] },
    podCidrs: spec.podsOnBridge === undefined ? [] : [blockOfNode(spec)],
    ...(spec.podsOnBridge !== undefined && { bridge: BRIDGE }),
    families: spec.families ?? [4],
    nodePort: true,
    vpcCidrs: ['10.0.0.0/16'],
  };
}

function eniNetwork(index: number, families: readonly (4 | 6)[]): EniNetwork {
  const number = index + 1;
  return {
    eniId: `eni-${(0x5a3c1e0 + number * 7919).toString(36)}${number}`,
    mac: mac(0x20, number),
    ifindex: 2 + number,
    ifname: `eth${number}`,
    mtu: 1500,
    table: 4002 + number,
    slot: number,
    addresses: families.map((family) =>
      family === 4
        ? { ip: `10.0.${number}.2`, gateway: `10.0.${number}.1` }
        : { ip: `fd00:1::${number}:2`, gateway: 'fe80::1' },
    ),
  };
}

function blockOfNode({ block = '172.20.0.0/26' }: FixtureNode): PodCidr {
  return podCidrOf(block);
}

/** The bridge of GlobalRoute Pods, as another program made it. */
const BRIDGE: BridgeNetwork = {
  ...{ name: 'cbr0', ifindex: 500, isPresent: true, mtu: 1500, wiring: 'bridge' },
  masquerade: { exempt: ['10.0.0.0/16'] },
};

function podNetwork(eni: EniNetwork, eniIndex: number, index: number, spec: FixtureNode): EniPodNetwork {
  const ips = (spec.families ?? [4]).map((family) =>
    family === 4
      ? `10.0.${eniIndex + 1}.${10 + (index % 200)}`
      : `fd00:1::${eniIndex + 1}:${(0x100 + index).toString(16)}`,
  );
  return { ...attachment(index, ips, spec), kind: 'route-eni', eniTable: eni.table };
}

function bridgePodNetwork(number: number, index: number, spec: FixtureNode): BridgePodNetwork {
  const block = blockOfNode(spec);
  const pod = attachment(index, [block.gateway.replace(/\d+$/, `${number + 2}`)], spec);
  return { ...pod, kind: 'bridge', wiring: 'bridge', block: blockOf(block) };
}

function attachment(index: number, ips: readonly string[], spec: FixtureNode) {
  const containerId = (BigInt(index + 1) * 0x9e3779b97f4a7c15f39cc0605cedc834n)
    .toString(16)
    .padStart(64, '0')
    .slice(-64);
  const podName = podNameOf(index, spec);
  return {
    key: { containerId, ifName: 'eth0' },
    ips,
    hostVeth: {
      name: hostVethName({ containerId, ifName: 'eth0', podNamespace: 'default', podName }),
      mac: mac(0x30, index),
      ifindex: 100 + index,
    },
    podVeth: { name: 'eth0', mac: mac(0x40, index) },
    mtu: 1500,
    alias: hostVethAlias({ containerId, ifName: 'eth0' }),
  };
}

function podNameOf(index: number, spec: FixtureNode): string {
  return spec.podName?.(index) ?? `web-${index}`;
}

function leaseOf(pod: PodNetwork, index: number, enis: readonly EniNetwork[], spec: FixtureNode): Lease {
  const { cidr } = blockOfNode(spec);
  const eniId =
    pod.kind === 'bridge' ? `pod-cidr:${cidr}` : (enis.find(({ table }) => table === pod.eniTable)?.eniId ?? '');
  return {
    ...pod.key,
    ...(pod.kind === 'bridge'
      ? { network: 'tke-bridge', plugin: 'bridge', block: { cidr, wiring: pod.wiring } }
      : { network: 'tke-route-eni', plugin: 'route-eni' }),
    netns: `/run/netns/cni-${index}`,
    podNamespace: 'default',
    podName: podNameOf(index, spec),
    podUid: '',
    addresses: pod.ips.map((ip) => ({ ip, family: familyOf(ip), eniId, assignmentId: `a-${index}` })),
    eniId,
    state: 'active',
    hostVeth: pod.hostVeth,
    podMac: pod.podVeth.mac,
    mtu: pod.mtu,
    createdAtMs: index,
  };
}

function hostFacts(state: HostState, enis: readonly EniNetwork[], pods: readonly PodNetwork[]): NetnsFacts {
  const plain = (ifindex: number, ifname: string, address: string) =>
    linkMessage({ ifindex, ifname, address, mtu: 1500, group: 0 });
  return {
    links: [
      { ...plain(1, 'lo', '00:00:00:00:00:00'), flags: 0x10049 },
      plain(2, 'eth0', mac(0x10, 1)),
      ...enis.map(({ ifindex, ifname, mac: address }) => plain(ifindex, ifname, address)),
      ...pods.map((pod) => ({
        ...linkMessage({
          ifindex: pod.hostVeth.ifindex ?? 0,
          ifname: pod.hostVeth.name,
          address: pod.hostVeth.mac,
          mtu: pod.mtu,
          group: linkGroupOf(pod),
        }),
        kind: 'veth',
        ifalias: pod.alias,
        ...(pod.kind === 'bridge' && { master: BRIDGE.ifindex, bridgePort: { mode: 1 } }),
      })),
      ...state.links
        .filter(({ kind }) => kind === 'bridge')
        .map(({ ifindex, ifname }) => ({ ...plain(ifindex, ifname, mac(0x50, 1)), kind: 'bridge' })),
    ],
    addresses: [...state.addresses, { ifindex: 2, ifname: 'eth0', prefix: '10.0.0.4/24' }].map(addressMessage),
    routes: [
      ...state.routes.map((route) => routeMessage(routeSpec(route))),
      routeMessage({ family: 2, table: 254, gateway: '10.0.0.1', oif: 2, protocol: 16 }),
      routeMessage({ family: 2, table: 254, dst: '10.0.0.0/24', oif: 2, protocol: 2, scope: 253, prefsrc: '10.0.0.4' }),
      routeMessage({ family: 2, table: 255, dst: '10.0.0.4/32', oif: 2, protocol: 2, scope: 254, type: 2 }),
    ],
    rules: [
      ruleMessage({ family: 2, priority: 0, table: 255, protocol: 2 }),
      ...state.rules.map((rule) => ruleMessage(ruleSpec(rule))),
      ruleMessage({ family: 2, priority: 32766, table: 254, protocol: 2 }),
      ruleMessage({ family: 2, priority: 32767, table: 253, protocol: 2 }),
    ],
    neighs: [],
    traffic: NO_TRAFFIC,
    sysctls: new Map([
      ...state.sysctls.map(({ key, value }) => [sysctlName(key), value] as const),
      ['net.ipv4.conf.all.rp_filter', '0'],
    ]),
  };
}

function insideFacts(pod: PodNetwork, state: NetState): NetnsFacts {
  return {
    links: [linkMessage({ ifindex: 2, ifname: 'eth0', address: pod.podVeth.mac, mtu: pod.mtu, group: 0 })],
    addresses: state.addresses.map(addressMessage),
    routes: state.routes.map((route) => routeMessage(routeSpec(route))),
    rules: [],
    neighs: state.neighs
      .map((neigh) => ({ family: 2, state: 0x80, flags: 0, type: 1, unknown: [], ...neighSpec(neigh) }))
      .map((neigh) => ({ ...neigh, family: 2, state: 0x80, flags: 0 })),
    traffic: NO_TRAFFIC,
    sysctls: new Map(),
  };
}

function linkMessage(
  fields: Pick<LinkMessage, 'ifindex' | 'ifname' | 'mtu' | 'group'> & { readonly address: string },
): LinkMessage {
  return { family: 0, type: 1, flags: 0x11043, change: 0, operstate: 6, unknown: [], ...fields };
}

function addressMessage({ ifindex, prefix }: { readonly ifindex: number; readonly prefix: string }): AddressMessage {
  const [address = '', length = '32'] = prefix.split('/');
  return {
    family: addressFamily(familyOf(prefix)),
    prefixlen: Number(length),
    scope: 0,
    ifindex,
    local: address,
    address,
    flags: 0x80,
    unknown: [],
  };
}

function routeMessage(spec: Partial<RouteMessage>): RouteMessage {
  const message = { family: 2, tos: 0, protocol: 84, scope: 0, type: 1, flags: 0, table: 254, unknown: [], ...spec };
  // The kernel tells a default route by its having no destination.
  const { dst, ...rest } = message;
  return dst === undefined || dst === anyPrefix(4) || dst === anyPrefix(6) ? rest : { ...rest, dst };
}

function ruleMessage(spec: Partial<RuleMessage> & { readonly priority: number }): RuleMessage {
  return { family: 2, tos: 0, action: 1, flags: 0, table: 254, protocol: 84, unknown: [], ...spec };
}

function mac(kind: number, number: number): string {
  const digits = (kind * 0x1000000 + number).toString(16).padStart(10, '0');
  return `0a:${digits.match(/../g)?.join(':') ?? ''}`;
}
