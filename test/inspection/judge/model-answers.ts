import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { SupplyEni } from '../../../agent/journal/supply.ts';
import { buildVerdicts } from '../../../cli/commands/diff/build-verdicts.ts';
import { CHECKS } from '../../../cli/commands/doctor/checks.ts';
import { evaluateChecks } from '../../../cli/commands/doctor/evaluate-checks.ts';
import { buildGraph } from '../../../cli/commands/graph/build-graph.ts';
import { openNft } from '../../../dataplane/nft.ts';
import { RTPROT_TKE_ENI } from '../../../dataplane/numbers.ts';
import { type Finding, uniqueFindings } from '../../../inspection/catalogue/finding.ts';
import { desiredOfNode } from '../../../inspection/desired/desired-of.ts';
import { buildExplanation } from '../../../inspection/explain/build-explanation.ts';
import { buildExplainContext } from '../../../inspection/explain/explain-context.ts';
import { findingOf, isDifferent } from '../../../inspection/judge/difference.ts';
import { ifKnown, known, unknown } from '../../../inspection/node/known.ts';
import type { HostFacts, NetnsFacts, NodeFacts } from '../../../inspection/node/node-facts.ts';
import { readNftFacts } from '../../../inspection/node/read-nft-facts.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import { createNetns, deleteNetns } from '../../../netlink/netns.ts';
import type { RouteMessage } from '../../../netlink/route-message.ts';
import type { RuleMessage } from '../../../netlink/rule-message.ts';
import { IFF_NOARP, IFF_PROMISC, IFF_UP } from '../../../netlink/uapi/if-link.ts';
import { doctorFacts } from '../../cli/commands/doctor/facts.ts';
import { nodeFixture } from '../../cli/commands/graph/node-fixture.ts';
import { NOT_ASKED } from '../explain/not-asked.ts';
import { type Answer, causesOf, type NodeAnswers } from './node-answers.ts';

/** A node on which nothing is wrong, as it is read, and its nftables table as nft lists it. */
type World = { readonly facts: NodeFacts; readonly table: string };

/** One thing that goes wrong. `n` chooses which of several. */
type Fault = { readonly name: string; readonly inject: (facts: NodeFacts, n: number) => NodeFacts };
type DrawnFault = { readonly name: string; readonly inject: (facts: NodeFacts) => NodeFacts };

const NONE = { subject: '', element: '', paths: [], findings: [] };

/** Makes the node; nft(8) lists its table in a namespace of its own. */
export async function openAnswers(): Promise<World> {
  const made = nodeFixture({ enis: 2, podsPerEni: 2, podsOnBridge: 2 });
  const name = `tke-test-${randomBytes(5).toString('hex')}`;
  const netns = createNetns(name);
  try {
    const text = ifKnown(made.host.nft)?.ourTable ?? '';
    await openNft({ netnsPath: netns.path }).load(text);
    const nft = await readNftFacts({ netnsPath: netns.path });
    if (nft.kind === 'unknown') throw new Error(nft.why);
    const facts = asRead({ ...made, host: { ...made.host, nft } });
    return { facts, table: nft.value.ourTable ?? '' };
  } finally {
    netns.close();
    deleteNetns(name);
  }
}

/** Adds what the kernel makes by itself: local routes, rules of each namespace, the index of the other end of a pair. */
function asRead(facts: NodeFacts): NodeFacts {
  const { host } = facts;
  const main = host.routes.find(({ table }) => table === 254);
  const rules = host.rules.filter(({ protocol }) => protocol !== RTPROT_TKE_ENI);
  if (main === undefined) throw new Error('the fixture has routes');
  const local = (ifindex: number, ip: string): RouteMessage => {
    const { gateway: _, ...route } = main;
    return { ...route, table: 255, type: 2, protocol: 2, scope: 254, dst: `${ip}/32`, oif: ifindex, prefsrc: ip };
  };
  const locals = ({ addresses }: NetnsFacts) => addresses.map(({ ifindex, address }) => local(ifindex, address));
  return {
    ...facts,
    host: { ...host, routes: [...host.routes, ...locals(host)] },
    pods: facts.pods.map((pod) => {
      const inside = ifKnown(pod.inside);
      if (inside === undefined) return pod;
      const links = inside.links.map((link) => ({ ...link, link: pod.hostIfindex ?? 0 }));
      return { ...pod, inside: known({ ...inside, links, rules, routes: [...inside.routes, ...locals(inside)] }) };
    }),
  };
}

/** What each command says of the node with these faults. */
export function answersOf({ facts, table }: World, faults: readonly DrawnFault[], hasAgent: boolean): NodeAnswers {
  const broken = faults.reduce((node, fault) => fault.inject(node), facts);
  const node = hasAgent ? broken : withoutAgent(broken);
  const context = buildExplainContext(node, hasAgent ? known(table) : unknown('no record', ''), NOT_ASKED);
  const differences = context.assessment.differences.filter(isDifferent);
  const assessed = differences.map(findingOf);
  const answer = (command: string, findings: readonly Finding[]): Answer => ({
    ...{ command, findings },
    isGood: findings.every(({ severity }) => severity !== 'error'),
  });
  const diagnosis = evaluateChecks(
    { checks: CHECKS, isSelected: () => true },
    doctorFacts({ node, assessed, differences: hasAgent ? known(assessed.length) : unknown('no record', '') }),
  );
  // Of a Pod whose address only the lost record knew nothing can be asked.
  const pods = context.pods.filter(({ ips }) => ips.length > 0);
  const explanations = pods.map(({ pod }) =>
    buildExplanation(context, { subject: pod.key, to: undefined, from: undefined }),
  );
  const graph = buildGraph(node, { explanations, findings: hasAgent ? assessed : [] });
  const common = {
    doctor: answer('doctor', diagnosis.findings),
    graph: answer('graph', graph.findings),
    explained: new Map(
      pods.map(({ pod, title }, at) => [
        pod.key,
        {
          ...answer(`explain ${title}`, uniqueFindings(causesOf(explanations[at] ?? NONE))),
          element: `pod:${pod.key}`,
        },
      ]),
    ),
  };
  const agent = ifKnown(node.agent);
  if (agent === undefined) return common;
  const desired = desiredOfNode(agent, node);
  const nothing = { pods: [], peers: new Map(), deadSandboxes: new Set<string>(), unread: [] };
  const observed = { links: [], addresses: [], routes: [], rules: [], neighs: [], sysctls: new Map(), nft: {} };
  const snapshot = { ...nothing, agent, facts: node, desired, host: observed };
  const checked = context.pods.map(({ pod, title }) => {
    const verdicts = buildVerdicts(snapshot, { differences, changes: [], unjudged: [] }, pod.key);
    const own = verdicts.find(({ owner }) => owner.kind === 'pod');
    return [pod.key, { ...answer(`check ${title}`, []), isGood: own?.isOk !== false }] as const;
  });
  return {
    ...common,
    planned: { diff: answer('diff', assessed), repair: answer('repair', assessed), checked: new Map(checked) },
  };
}

function withoutAgent(node: NodeFacts): NodeFacts {
  const none = unknown('no journal', 'start the agent');
  return { ...node, agent: none, pods: node.pods.map((pod) => ({ ...pod, lease: none })) };
}

type Change<T> = (one: T) => T | undefined;

/** Changes one of those that fit, or removes it. */
function oneOf<T>(
  all: readonly T[],
  n: number,
  fits: (one: T) => boolean,
  change: Change<T> = () => undefined,
): readonly T[] {
  const fitting = all.filter(fits);
  const chosen = fitting[n % Math.max(1, fitting.length)];
  return all.flatMap((one) => (one === chosen ? (change(one) ?? []) : [one]));
}

const inHost =
  (change: (host: HostFacts, n: number) => Partial<HostFacts>): Fault['inject'] =>
  (facts, n) => ({
    ...facts,
    host: { ...facts.host, ...change(facts.host, n) },
  });
const inPod =
  (change: (inside: NetnsFacts) => Partial<NetnsFacts>): Fault['inject'] =>
  (facts, n) => ({
    ...facts,
    pods: facts.pods.map((pod, at) => {
      const inside = ifKnown(pod.inside);
      return at !== n % facts.pods.length || inside === undefined
        ? pod
        : { ...pod, inside: known({ ...inside, ...change(inside) }) };
    }),
  });

const inSupply =
  (change: (eni: SupplyEni) => Partial<SupplyEni>): Fault['inject'] =>
  (facts, n) => {
    const agent = ifKnown(facts.agent);
    const supply = agent?.journal.supply;
    if (agent === undefined || supply === undefined) return facts;
    const enis = supply.enis.map((eni, at) => (at === n % supply.enis.length ? { ...eni, ...change(eni) } : eni));
    return { ...facts, agent: known({ ...agent, journal: { ...agent.journal, supply: { ...supply, enis } } }) };
  };

const isOurs = ({ protocol }: { readonly protocol?: number | undefined }): boolean => protocol === RTPROT_TKE_ENI;
const isEni = ({ ifname }: LinkMessage): boolean => /^eth[1-9]/.test(ifname);
const isVeth = ({ kind }: LinkMessage): boolean => kind === 'veth';
const isBridge = ({ kind }: LinkMessage): boolean => kind === 'bridge';
const isPort = ({ kind, master }: LinkMessage): boolean => kind === 'veth' && master !== undefined;
const isUnicast = (route: RouteMessage): boolean => isOurs(route) && route.type === 1;

const links = (fits: (link: LinkMessage) => boolean, change: Change<LinkMessage>): Fault['inject'] =>
  inHost((host, n) => ({ links: oneOf(host.links, n, fits, change) }));
const setting = (of: RegExp, value: string): Fault['inject'] =>
  inHost(({ sysctls }, n) => {
    const names = [...sysctls.keys()].filter((name) => of.test(name));
    const name = names[n % Math.max(1, names.length)];
    return name === undefined ? {} : { sysctls: new Map([...sysctls, [name, value]]) };
  });
const addRule =
  (rule: (host: HostFacts, ip: string) => Partial<RuleMessage>): Fault['inject'] =>
  (facts, n) => {
    const lease = ifKnown(facts.pods[n % facts.pods.length]?.lease ?? unknown('', ''));
    const made = { family: 2, tos: 0, action: 1, flags: 0, table: 254, priority: 100, protocol: 3, unknown: [] };
    const added = { ...made, ...rule(facts.host, lease?.addresses[0]?.ip ?? '') };
    const { rules } = facts.host;
    // The kernel has no rule twice.
    const isThere = rules.some((one) => isDeepStrictEqual(one, added));
    return isThere ? facts : { ...facts, host: { ...facts.host, rules: [added, ...rules] } };
  };
/** The kernel deletes the routes of a link that goes down. */
const down =
  (fits: (link: LinkMessage) => boolean): Fault['inject'] =>
  (facts, n) => {
    const { host } = facts;
    const left = oneOf(host.links, n, fits, (link) => ({ ...link, flags: link.flags & ~IFF_UP }));
    const gone = left.find((link) => fits(link) && (link.flags & IFF_UP) === 0);
    return { ...facts, host: { ...host, links: left, routes: host.routes.filter(({ oif }) => oif !== gone?.ifindex) } };
  };

const KINDS: readonly Fault[] = [
  { name: 'a rule is gone', inject: inHost((host, n) => ({ rules: oneOf(host.rules, n, isOurs) })) },
  {
    name: 'a rule looks up another table',
    inject: inHost((host, n) => ({ rules: oneOf(host.rules, n, isOurs, (rule) => ({ ...rule, table: 4999 })) })),
  },
  {
    name: 'a rule is there twice, once by another program',
    inject: inHost((host, n) => {
      const rule = host.rules.filter(isOurs)[n % host.rules.filter(isOurs).length];
      const isThere = host.rules.some((one) => isDeepStrictEqual(one, { ...rule, protocol: 99 }));
      return rule === undefined || isThere ? {} : { rules: [...host.rules, { ...rule, protocol: 99 }] };
    }),
  },
  {
    name: 'a rule of ours that no plan has',
    inject: addRule(() => ({ priority: 1537, src: '10.0.2.201/32', protocol: 84 })),
  },
  { name: 'a rule of others leads a Pod to main', inject: addRule((_, ip) => ({ src: `${ip}/32` })) },
  { name: 'a rule of others prohibits', inject: addRule((_, ip) => ({ src: `${ip}/32`, action: 8 })) },
  { name: 'a rule of others to a Pod is a blackhole', inject: addRule((_, ip) => ({ dst: `${ip}/32`, action: 6 })) },
  { name: 'a rule of others stands at our priority', inject: addRule(() => ({ priority: 1537, src: '10.77.0.0/16' })) },
  { name: 'a rule of others drops ICMP', inject: addRule(() => ({ ipProto: 1, action: 7 })) },
  {
    name: "the kernel's rule for table local is gone",
    inject: inHost(({ rules }) => ({ rules: rules.filter(({ table }) => table !== 255) })),
  },
  { name: 'a route is gone', inject: inHost((host, n) => ({ routes: oneOf(host.routes, n, isUnicast) })) },
  {
    name: 'a route leads to the primary interface',
    inject: inHost((host, n) => ({
      routes: oneOf(host.routes, n, isUnicast, ({ gateway: _, ...route }) => ({ ...route, oif: 2 })),
    })),
  },
  {
    name: 'a blackhole stands where a route should',
    inject: inHost((host, n) => ({
      routes: oneOf(host.routes, n, isUnicast, ({ gateway: _, oif: __, ...route }) => ({
        ...route,
        type: 6,
        protocol: 3,
      })),
    })),
  },
  {
    name: 'another program has a route in the table of an ENI',
    inject: inHost((host, n) => {
      const route = host.routes.find(({ table, type }) => table === 4003 + (n % 2) && type === 1);
      const isThere = host.routes.some(({ table, dst }) => table === route?.table && dst === '1.1.1.0/24');
      return route === undefined || isThere
        ? {}
        : { routes: [...host.routes, { ...route, dst: '1.1.1.0/24', oif: 2, protocol: 4, gateway: '10.0.0.1' }] };
    }),
  },
  { name: 'the nftables table is gone', inject: inHost(() => ({ nft: known({ objects: [], ourTable: undefined }) })) },
  {
    name: 'the chain of an ENI is empty',
    inject: inHost(({ nft }, n) => {
      const facts = ifKnown(nft);
      if (facts?.ourTable === undefined) return {};
      const chain = `eni_${4003 + (n % 2)}`;
      const objects = facts.objects.filter((object) => !JSON.stringify(object).includes(`"chain":"${chain}"`));
      const ourTable = facts.ourTable.replace(new RegExp(`(chain ${chain} \\{\\n)[^}]*\\}`), '$1\t}');
      return { nft: known({ ...facts, objects, ourTable }) };
    }),
  },
  { name: 'the node does not forward', inject: setting(/^net\.ipv4\.ip_forward$/, '0') },
  { name: 'the source check of an ENI is strict', inject: setting(/\.eth[1-9]\.rp_filter$/, '1') },
  { name: "the source check of a Pod's link is off", inject: setting(/\.eni\w+\.rp_filter$/, '0') },
  { name: "a Pod's link does not forward", inject: setting(/ipv4\.conf\.eni\w+\.forwarding$/, '0') },
  { name: 'an ENI is down', inject: down(isEni) },
  { name: "a Pod's host interface is down", inject: down(isVeth) },
  {
    name: 'the MAC of a host interface is another',
    inject: links(isVeth, (link) => ({ ...link, address: '02:de:ad:be:ef:03' })),
  },
  { name: 'a host interface is in another group', inject: links(isVeth, (link) => ({ ...link, group: 77 })) },
  { name: 'a host interface has another MTU', inject: links(isVeth, (link) => ({ ...link, mtu: 1400 })) },
  {
    name: 'a host interface has ARP off',
    inject: links(isVeth, (link) => ({ ...link, flags: link.flags | IFF_NOARP })),
  },
  { name: 'a host interface is in a bridge', inject: links(isVeth, (link) => ({ ...link, master: 2 })) },
  { name: 'an ENI has another MTU', inject: links(isEni, (link) => ({ ...link, mtu: 1400 })) },
  { name: 'an ENI has no carrier', inject: links(isEni, (link) => ({ ...link, carrier: 0 })) },
  {
    name: 'an ENI has lost its address',
    inject: inHost((host, n) => ({
      addresses: oneOf(host.addresses, n, ({ ifindex }) => ifindex === 3 || ifindex === 4),
    })),
  },
  {
    name: 'an ENI has an address with a connected route',
    inject: inHost((host, n) => {
      const own = host.addresses.find(({ ifindex }) => ifindex === 3 + (n % 2));
      const more = own && { ...own, address: '10.0.7.7', local: '10.0.7.7', prefixlen: 24 };
      return more === undefined ? {} : { addresses: [...host.addresses, more] };
    }),
  },
  {
    name: "a Pod's interface is down",
    inject: inPod(({ links: all }) => ({ links: all.map((link) => ({ ...link, flags: 0 })), routes: [] })),
  },
  {
    name: "a Pod's interface has ARP off",
    inject: inPod(({ links: all }) => ({ links: all.map((link) => ({ ...link, flags: link.flags | IFF_NOARP })) })),
  },
  {
    name: "a Pod's MTU is larger",
    inject: inPod(({ links: all }) => ({ links: all.map((link) => ({ ...link, mtu: 9000 })) })),
  },
  {
    name: 'a Pod has lost its address',
    inject: inPod(({ routes }) => ({ addresses: [], routes: routes.filter(({ table }) => table !== 255) })),
  },
  {
    name: 'a Pod has no default route',
    inject: inPod(({ routes }) => ({ routes: routes.filter(({ gateway }) => gateway === undefined) })),
  },
  { name: 'a Pod has no neighbour', inject: inPod(() => ({ neighs: [] })) },
  {
    name: 'a Pod has a wrong neighbour',
    inject: inPod(({ neighs }) => ({ neighs: neighs.map((neigh) => ({ ...neigh, lladdr: '02:de:ad:be:ef:01' })) })),
  },
  { name: 'the bridge is gone', inject: links(isBridge, () => undefined) },
  { name: 'the bridge is down', inject: down(isBridge) },
  {
    name: 'the bridge is promiscuous',
    inject: links(isBridge, (link) => ({ ...link, flags: link.flags | IFF_PROMISC })),
  },
  { name: 'the bridge has a smaller MTU', inject: links(isBridge, (link) => ({ ...link, mtu: 1400 })) },
  {
    name: 'the bridge has lost its address',
    inject: inHost((host) => ({ addresses: host.addresses.filter(({ ifindex }) => ifindex !== 500) })),
  },
  { name: 'a port has left the bridge', inject: links(isPort, ({ master: _, ...link }) => link) },
  { name: 'a port has no hairpin', inject: links(isPort, (link) => ({ ...link, bridgePort: { mode: 0 } })) },
  { name: 'a port is isolated', inject: links(isPort, (link) => ({ ...link, bridgePort: { mode: 1, isolated: 1 } })) },
  { name: 'packets between ports pass no iptables', inject: setting(/bridge-nf-call-iptables$/, '0') },
  { name: 'the supply lacks addresses of Pods', inject: inSupply(() => ({ addresses: [] })) },
  {
    name: 'an address of a Pod is being released',
    inject: inSupply(({ addresses: [first, ...others] }) => ({
      addresses: first === undefined ? others : [{ ...first, state: 'releasing' as const }, ...others],
    })),
  },
  { name: 'an ENI of the supply is not attached', inject: inSupply(() => ({ attached: false })) },
];

/** Any of the faults. */
export const FAULTS: fc.Arbitrary<DrawnFault> = fc
  .tuple(fc.constantFrom(...KINDS), fc.nat({ max: 12 }))
  .map(([{ name, inject }, n]) => ({ name: `${name} (${n})`, inject: (facts) => inject(facts, n) }));
