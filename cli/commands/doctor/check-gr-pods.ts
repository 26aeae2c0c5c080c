import type { Lease } from '../../../agent/journal/lease.ts';
import { isInCidr } from '../../../crd/ip-text.ts';
import { networkPrefix } from '../../../dataplane/ip-prefix.ts';
import { locateBridge } from '../../../dataplane/locate-bridge.ts';
import type { NodeNetwork } from '../../../dataplane/network.ts';
import { BRIDGE_NAME, NFT_TABLE } from '../../../dataplane/numbers.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { linkId, podId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { noMasqueradeFinding } from '../../../inspection/faults/no-masquerade-finding.ts';
import { findMasqueraders } from '../../../inspection/node/find-masqueraders.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { prefixContains } from '../../../inspection/node/prefix-contains.ts';
import { ownPrefix } from '../../../netlink/address-message.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import { AF_INET } from '../../../netlink/uapi/netlink.ts';
import { nodeNameOf } from './agent-pod-command.ts';
import { type Check, done, skipped } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';

/** Checks the podCIDR of a node with GlobalRoute Pods: there is one, Pods live in it, and nothing else has its addresses. */
export const POD_CIDR_CHECK: Check = {
  id: 'pod-cidr',
  scope: 'GlobalRoute Pods: the node has a podCIDR, its Pods live in it, no other network overlaps it',
  finds: ['pod-cidr-missing', 'pod-cidr-changed', 'pod-cidr-overlap'],
  evaluate: (facts) => {
    const outline = buildGrOutline(facts);
    if (outline === undefined) return skipped(NO_GR_PODS);
    const { blocks } = outline;
    if (blocks === undefined) return skipped('the podCIDR of the node is not known without the agent and its record');
    const overlapping = overlaps(facts, blocks);
    const refused = overlapping.length > 0 ? [] : refusedByAgent(facts);
    const findings = [...missing(facts, outline), ...changed(outline, blocks), ...overlapping, ...refused];
    return done(findings, [`${blocks.join(', ') || 'no podCIDR'}, ${outline.leases.length} Pods`]);
  },
};

function missing({ node }: DoctorFacts, { blocks, isDefault }: GrOutline): readonly Finding[] {
  if (!isDefault || blocks?.length !== 0) return [];
  return [
    finding('pod-cidr-missing', {
      what: 'the default network is tke-bridge, and the Node has no podCIDR: ADDs of its Pods fail with code 11',
      fix: [`kubectl get node ${nodeNameOf(node)} -o jsonpath='{.spec.podCIDRs}'`, 'tke-eni cluster'],
      subjects: [],
    }),
  ];
}

/** Number of Pods, networks, ports and files that are named. */
const MAX_NAMED = 5;

function changed({ leases }: GrOutline, blocks: readonly string[]): readonly Finding[] {
  const former = leases.filter(({ block, state }) => state === 'active' && !blocks.includes(block.cidr));
  if (former.length === 0 || blocks.length === 0) return [];
  const names = former.map(({ podNamespace, podName, containerId }) =>
    podName === '' ? containerId.slice(0, 13) : `${podNamespace}/${podName}`,
  );
  const cidrs = [...new Set(former.map(({ block }) => block.cidr))];
  return [
    finding('pod-cidr-changed', {
      what: `${former.length} Pods have addresses of ${cidrs.join(', ')}, which ${cidrs.length === 1 ? 'is' : 'are'} no longer of this node (${blocks.join(', ')}): ${listText(names)}`,
      fix: former
        .slice(0, MAX_NAMED)
        .flatMap(({ podNamespace, podName }) =>
          podName === '' ? [] : [`kubectl -n ${podNamespace} delete pod ${podName}`],
        ),
      subjects: former.map(({ containerId, ifName }) => podId(`${containerId}/${ifName}`)),
    }),
  ];
}

/** The agent knows of more networks than this node shows, and gives no address of a block that overlaps one. */
function refusedByAgent({ status }: DoctorFacts): readonly Finding[] {
  const problem = ifKnown(status)?.bridge?.problem ?? '';
  if (!/^podCIDR .* overlaps /.test(problem)) return [];
  return [finding('pod-cidr-overlap', { what: problem, fix: OVERLAP_FIX, subjects: [] })];
}

const OVERLAP_FIX = [
  'choose another --cluster-cidr, or move the other network',
  'drain the node, delete its Node, and let it register again',
] as const;

/** A network that a block may not overlap. */
type OtherNetwork = { readonly cidr: string; readonly what: string; readonly subjects: readonly string[] };

function overlaps(facts: DoctorFacts, blocks: readonly string[]): readonly Finding[] {
  const others = otherNetworks(facts);
  return blocks.flatMap((block) => {
    const overlapping = others.filter(({ cidr }) => isOverlap(block, cidr));
    if (overlapping.length === 0) return [];
    const names = overlapping.map(({ cidr, what }) => `${cidr} (${what})`);
    return [
      finding('pod-cidr-overlap', {
        what: `podCIDR ${block} overlaps ${listText(names)}`,
        fix: OVERLAP_FIX,
        subjects: overlapping.flatMap(({ subjects }) => subjects),
      }),
    ];
  });
}

function otherNetworks({ node }: DoctorFacts): readonly OtherNetwork[] {
  const agent = ifKnown(node.agent);
  const planned = agent === undefined ? undefined : ifKnown(agent.node)?.node;
  const subnets = (agent?.journal.supply?.enis ?? []).flatMap(({ eniId, primary }) =>
    primary.map(({ subnetCidr }) => ({
      cidr: networkPrefix(subnetCidr),
      what: `the subnet of ${eniId}`,
      subjects: [],
    })),
  );
  const bridge = planned?.bridge?.name ?? BRIDGE_NAME;
  const connected = node.host.addresses
    .filter(({ family, prefixlen }) => family === AF_INET && prefixlen < 32)
    .flatMap((message) => {
      const { ifindex } = message;
      const ifname = node.host.links.find((link) => link.ifindex === ifindex)?.ifname ?? `if${ifindex}`;
      if (ifname === bridge || ifname === 'lo') return [];
      const cidr = networkPrefix(ownPrefix(message));
      return [{ cidr, what: `the network of ${ifname} of this node`, subjects: [linkId(ifindex)] }];
    });
  const services = (planned?.serviceCidrs ?? []).map((cidr) => ({ cidr, what: 'a range of Services', subjects: [] }));
  const seen = new Set<string>();
  return [...subnets, ...services, ...connected].filter(({ cidr }) => !seen.has(cidr) && seen.add(cidr) !== undefined);
}

function isOverlap(a: string, b: string): boolean {
  const [baseOfA = '', baseOfB = ''] = [a, b].map((cidr) => cidr.split('/')[0]);
  if (baseOfA.includes(':') || baseOfB.includes(':')) return false;
  return isInCidr(baseOfA, b) || isInCidr(baseOfB, a);
}

/** Checks that the bridge has ports of our Pods alone, and that host-local records no addresses of other Pods. */
export const BRIDGE_PORTS_CHECK: Check = {
  id: 'bridge-ports',
  scope: 'GlobalRoute Pods: no Pod of another bridge plugin is on the bridge or has an address of the podCIDR',
  finds: ['bridge-foreign-port', 'host-local-left'],
  evaluate: (facts) => {
    const outline = buildGrOutline(facts);
    if (outline === undefined) return skipped(NO_GR_PODS);
    const { bridge } = outline;
    const foreign = foreignPorts(facts, outline);
    return done(
      [...foreignFinding(outline, foreign), ...leftFiles(facts, outline)],
      [bridge === undefined ? 'there is no bridge' : `${bridge.ifname}: ${portsOf(facts, outline).length} ports`],
    );
  },
};

type Port = DoctorFacts['node']['host']['links'][number];

function portsOf({ node }: DoctorFacts, { bridge }: GrOutline): readonly Port[] {
  return bridge === undefined ? [] : node.host.links.filter(({ master }) => master === bridge.ifindex);
}

function foreignPorts(facts: DoctorFacts, outline: GrOutline): readonly Port[] {
  const ours = new Set(facts.node.pods.map(({ hostIfindex }) => hostIfindex));
  return portsOf(facts, outline).filter(({ ifindex }) => !ours.has(ifindex));
}

function foreignFinding({ bridge, isDefault }: GrOutline, ports: readonly Port[]): readonly Finding[] {
  if (ports.length === 0 || bridge === undefined) return [];
  const names = listText(ports.map(({ ifname }) => ifname));
  return [
    finding('bridge-foreign-port', {
      what: `${ports.length} ports of ${bridge.ifname} are not of our Pods: ${names}`,
      fix: [
        `bridge link show | grep 'master ${bridge.ifname}'`,
        'restart the agent, which takes them over; or drain the node',
      ],
      subjects: ports.map(({ ifindex }) => linkId(ifindex)),
      ...(isDefault ? { severity: 'error' as const } : {}),
    }),
  ];
}

/** A file that names the sandbox of a lease, with the address of that lease, is no leftover. */
function leftFiles({ hostLocal }: DoctorFacts, { leases }: GrOutline): readonly Finding[] {
  if (hostLocal.kind === 'unknown') return [];
  const owned = new Set(leases.flatMap((lease) => lease.addresses.map(({ ip }) => `${ip} ${lease.containerId}`)));
  const left = hostLocal.value.filter(({ ip, containerId }) => !owned.has(`${ip} ${containerId}`));
  if (left.length === 0) return [];
  const taken = left.filter(({ ip }) => leases.some(({ addresses }) => addresses.some((address) => address.ip === ip)));
  return [
    finding('host-local-left', {
      what: `host-local records ${left.length} addresses for sandboxes that the agent has no lease of: ${listText(left.map(({ ip }) => ip))}`,
      fix: [
        'crictl pods -q --no-trunc   # which of the sandboxes in these files live',
        ...left.slice(0, MAX_NAMED).map(({ path }) => `rm ${path}`),
      ],
      subjects: [],
      // Then two sandboxes have one address by the records.
      ...(taken.length > 0 ? { severity: 'error' as const } : {}),
    }),
  ];
}

function listText(names: readonly string[]): string {
  return `${names.slice(0, MAX_NAMED).join(', ')}${names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : ''}`;
}

/** Checks that one program masquerades what GlobalRoute Pods send to outside of the VPC. */
export const MASQUERADE_CHECK: Check = {
  id: 'masquerade',
  scope: 'GlobalRoute Pods: one program gives their packets to outside of the VPC the address of the node',
  finds: ['gr-masquerade'],
  evaluate: (facts) => {
    const outline = buildGrOutline(facts);
    if (outline === undefined) return skipped(NO_GR_PODS);
    const { planned, leases, isDefault } = outline;
    const live = ifKnown(facts.status)?.bridge;
    if (live === undefined && planned?.bridge === undefined)
      return skipped('it is not known whether the agent does it');
    const isOurs = live?.masquerade ?? planned?.bridge?.masquerade !== undefined;
    const others = othersOf(facts, outline.blocks ?? []);
    if (isOurs && others.length > 0) {
      const subjects = [`nft:${NFT_TABLE}`];
      const fix = ['tke-eni status', 'iptables -t nat -S'];
      const what = `the agent masquerades, and ${others.join(' and ')} does too`;
      return done([finding('gr-masquerade', { what, fix, subjects })]);
    }
    if (isOurs) return done([], ['the agent masquerades']);
    if (others.length > 0) return done([], [others.join(', ')]);
    if (leases.length === 0 && !isDefault) return done([], ['no program masquerades, and there are no such Pods']);
    return done([noMasqueradeFinding(live?.masqueradeWhy)]);
  },
};

/** A rule of the chain POSTROUTING that masquerades; kube-proxy has its own in another chain. */
const MASQUERADE_RULE = /^-A POSTROUTING (.*)-j MASQUERADE/;

function othersOf({ node, iptables }: DoctorFacts, blocks: readonly string[]): readonly string[] {
  const agents = findMasqueraders(node.host);
  if (agents.length > 0) return agents;
  const tables = ifKnown(iptables);
  const lines = tables === undefined ? [] : [tables.legacy, tables.nft].flatMap((each) => ifKnown(each) ?? []);
  const rule = lines.find((line) => {
    const [, matches] = MASQUERADE_RULE.exec(line) ?? [];
    return matches !== undefined && isForBlock(matches, blocks);
  });
  return rule === undefined ? [] : [`the rule "${rule}"`];
}

/** A rule for another source, such as that of a container engine, is not for GlobalRoute Pods. */
function isForBlock(matches: string, blocks: readonly string[]): boolean {
  const [, isNot, source] = /(! )?-s (\S+)/.exec(matches) ?? [];
  if (source === undefined || isNot !== undefined) return true;
  return blocks.some((block) => prefixContains(source, block.split('/')[0] ?? ''));
}

/** The GlobalRoute Pods of a node, as far as the agent and the kernel show them. */
type GrOutline = {
  /** The node as the agent last planned it. */
  readonly planned: NodeNetwork | undefined;
  /** Leases of GlobalRoute Pods. */
  readonly leases: readonly (Lease & { readonly block: NonNullable<Lease['block']> })[];
  /** The present blocks; undefined where they are not known. */
  readonly blocks: readonly string[] | undefined;
  readonly isDefault: boolean;
  /** The bridge; undefined while there is none. */
  readonly bridge: LinkMessage | undefined;
};

/** Gathers what is known about GlobalRoute Pods; undefined where there are none, and none would be by default. */
function buildGrOutline({ node, status }: Pick<DoctorFacts, 'node' | 'status'>): GrOutline | undefined {
  const agent = ifKnown(node.agent);
  const planned = agent === undefined ? undefined : ifKnown(agent.node)?.node;
  const live = ifKnown(status)?.bridge;
  const leases = (agent?.journal.leases ?? []).flatMap((lease) =>
    lease.block === undefined ? [] : [{ ...lease, block: lease.block }],
  );
  if (live === undefined && planned?.bridge === undefined && leases.length === 0) return undefined;
  const { ifindex, isPresent } = locateBridge(node.host.links, planned?.bridge?.name ?? BRIDGE_NAME);
  const recorded = planned?.podCidrs.filter(({ isCurrent }) => isCurrent).map(({ cidr }) => cidr);
  return {
    planned,
    leases,
    blocks: live?.podCidrs ?? recorded,
    isDefault: live?.defaultNetwork === 'tke-bridge',
    bridge: node.host.links.find((link) => isPresent && link.ifindex === ifindex),
  };
}

/** Why a check of GlobalRoute Pods does not apply. */
const NO_GR_PODS = 'this node has no GlobalRoute Pods, and none would be by default';
