import { TABLE_MAIN } from '../../../dataplane/numbers.ts';
import { linkId, sysctlId, tableId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import type { Explanation } from '../../../inspection/explain/explanation.ts';
import { buildNodeModel, type ModelPod } from '../../../inspection/model/node-model.ts';
import { buildOwnerIndex } from '../../../inspection/node/build-owner-index.ts';
import type { EniFacts } from '../../../inspection/node/find-enis.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { ruleElement } from '../../../inspection/node/rule-selector.ts';
import type { RuleMessage } from '../../../netlink/rule-message.ts';
import { plural } from '../../output/plural.ts';
import { attachPaths } from './attach-paths.ts';
import { BRIDGE_GROUP, buildBridgeBoxes, buildBridgeGroup } from './build-bridge-boxes.ts';
import { buildEniBox, buildGatewayBox, buildNicBoxes } from './build-link-boxes.ts';
import { buildMarkBox, buildNftBox, ruleModeOf } from './build-mark-boxes.ts';
import { buildPodBoxes } from './build-pod-boxes.ts';
import { buildRuleBoxes } from './build-rule-boxes.ts';
import { buildTableBoxes } from './build-table-boxes.ts';
import { type Graph, type GraphEdge, type GraphGroup, type GraphNode, groupEnd, NODE_GROUP } from './graph.ts';

/** What is drawn in addition to the node itself. */
type GraphExtras = {
  /** Explanations, each about one Pod. */
  readonly explanations: readonly Explanation[];
  /** Findings about the whole node: those of doctor and diff. */
  readonly findings: readonly Finding[];
};

/** Id of the band for Pods that belong to no known shared ENI. */
const OTHER_GROUP = 'other';

/** Builds the drawing of a node, with the paths of its Pods and all findings. */
export function buildGraph(facts: NodeFacts, extras: GraphExtras): Graph {
  const { enis, pods } = buildNodeModel(facts);
  const views = pods.toSorted((a, b) => compareTexts(a.title, b.title) || compareTexts(a.pod.key, b.pod.key));
  const nodes = [
    ...sharedBoxes(facts, enis, views),
    ...views.flatMap((view) => buildPodBoxes(view, groupOfPod(view), facts)),
  ];
  const drawn: Graph = {
    title: titleOf(facts),
    subtitle: [
      `${ruleModeOf(facts)} mode`,
      plural(enis.length, 'ENI'),
      plural(views.length, 'Pod'),
      ...(facts.agent.kind === 'unknown' ? ['without the agent’s record'] : []),
    ].join(' · '),
    groups: groupsOf(enis, views, facts),
    nodes,
    edges: edgesOf(nodes, facts),
    paths: [],
    findings: [],
    unknowns: unknownsOf(facts),
  };
  return attachPaths(drawn, extras.explanations, extras.findings);
}

// Not localeCompare: a drawing must not differ with the locale of the terminal. Digits in names compare as numbers.
function compareTexts(a: string, b: string): number {
  const padded = (text: string) => text.replace(/\d+/g, (digits) => digits.padStart(12, '0'));
  const [left, right] = [padded(a), padded(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

function sharedBoxes(facts: NodeFacts, enis: readonly EniFacts[], views: readonly ModelPod[]): readonly GraphNode[] {
  const owners = buildOwnerIndex(facts);
  const groups = new Map(enis.map(({ table }) => [table, groupOfTable(table)]));
  const byKey = new Map(views.map((view) => [view.pod.key, groupOfPod(view)]));
  const groupOfRule = (rule: RuleMessage): string | undefined => {
    const owner = owners.ownerOfRule(rule);
    if (owner.kind === 'pod') return byKey.get(owner.key);
    return groups.get(rule.table);
  };
  const names = new Map(facts.host.links.map(({ ifindex, ifname }) => [ifindex, ifname]));
  const veths = new Set(views.flatMap(({ hostLink }) => hostLink?.ifindex ?? []));
  const ours = new Set([...veths, ...enis.flatMap(({ ifindex }) => ifindex ?? [])]);
  const bridges = buildBridgeBoxes(facts, views);
  return [
    settingsBox(facts),
    buildNftBox(facts),
    ...enis.flatMap((eni) => buildMarkBox(eni, groupOfTable(eni.table), facts) ?? []),
    ...buildRuleBoxes(facts.host.rules, facts.host.tableNames, groupOfRule),
    ...buildTableBoxes({
      routes: facts.host.routes,
      tableNames: facts.host.tableNames,
      nameOf: (ifindex) => names.get(ifindex) ?? `#${ifindex}`,
      tables: [...groups.keys(), ...facts.host.rules.map(({ table }) => table).filter((table) => table !== 0)],
      groupOf: (table) => groups.get(table),
      isPodLink: (ifindex) => veths.has(ifindex),
    }),
    ...enis.map((eni) => buildEniBox(eni, groupOfTable(eni.table), facts)),
    ...bridges,
    ...buildNicBoxes(facts, ({ ifindex }) => ours.has(ifindex) || bridges.some(({ id }) => id === linkId(ifindex))),
    ...enis.flatMap((eni) => buildGatewayBox(eni.table, groupOfTable(eni.table), facts, eni) ?? []),
    ...[buildGatewayBox(TABLE_MAIN, NODE_GROUP, facts) ?? []].flat(),
  ];
}

function settingsBox({ host }: NodeFacts): GraphNode {
  const shown = [
    ['net.ipv4.ip_forward', 'ip_forward'],
    ['net.ipv6.conf.all.forwarding', 'IPv6 forwarding'],
    ['net.ipv4.conf.all.rp_filter', 'rp_filter all'],
  ] as const;
  // The settings of an interface are in the box of the interface.
  const shared = [...host.sysctls].filter(([name]) => !/\.conf\.(?!all\.|default\.)/.test(name));
  return {
    id: 'settings',
    kind: 'settings',
    lane: 'marks',
    group: NODE_GROUP,
    title: 'Settings',
    lines: shown.flatMap(([name, title]) => {
      const value = host.sysctls.get(name);
      return value === undefined ? [] : [`${title} ${value}`];
    }),
    owner: 'kernel',
    state: 'ok',
    elements: shared.map(([name]) => sysctlId(name)),
    facts: [
      {
        title: 'sysctl',
        rows: shared.map(([name, value]) => `${name} = ${value}`),
      },
    ],
    findings: [],
  };
}

function groupsOf(enis: readonly EniFacts[], views: readonly ModelPod[], facts: NodeFacts): readonly GraphGroup[] {
  const byGroup = Map.groupBy(views, groupOfPod);
  const bridge = buildBridgeGroup(facts, views);
  const known = new Set([...enis.map(({ table }) => groupOfTable(table)), BRIDGE_GROUP]);
  const others = [...byGroup].filter(([id]) => !known.has(id)).flatMap(([, group]) => group);
  return [
    { id: NODE_GROUP, kind: 'node', title: 'Node', subtitle: 'shared by all Pods' },
    ...enis.map((eni): GraphGroup => {
      const id = groupOfTable(eni.table);
      const title = eni.eniId ?? `ENI of table ${eni.table}`;
      return {
        id,
        kind: 'eni',
        title,
        subtitle: `${eni.ifname ?? 'not attached'} · ${plural(byGroup.get(id)?.length ?? 0, 'Pod')}`,
      };
    }),
    ...(bridge === undefined ? [] : [bridge]),
    ...(others.length === 0
      ? []
      : [
          {
            id: OTHER_GROUP,
            kind: 'other',
            title: otherTitle(others),
            subtitle: plural(others.length, 'Pod'),
          } as const,
        ]),
  ];
}

/** Returns the title of the band of Pods whose ENI is inside them, or is not known. */
function otherTitle(views: readonly ModelPod[]): string {
  const direct = views.filter(({ lease }) => lease?.plugin === 'direct-eni').length;
  if (direct === 0) return 'Without an ENI';
  return direct === views.length ? 'ENIs inside of Pods' : 'ENIs inside of Pods, or none';
}

/** Builds the edges: from box to box within each band. */
function edgesOf(nodes: readonly GraphNode[], facts: NodeFacts): readonly GraphEdge[] {
  const byGroup = Map.groupBy(nodes, ({ group }) => group);
  const withinBands = [...byGroup].flatMap(([group, members]): readonly GraphEdge[] => {
    const of = (kind: GraphNode['kind']) => members.filter((node) => node.kind === kind);
    const [mark] = of('mark');
    const [gateway] = of('gateway');
    const isEni = group !== NODE_GROUP;
    const tableOf = tableFinder(facts, members);
    const podRules = of('rule').filter((rule) => isEni && routesPods(rule));
    return [
      ...of('veth').map((veth): GraphEdge => ({ from: veth.podNode ?? group, to: veth.id, kind: 'veth' })),
      ...(mark !== undefined && isEni ? [{ from: groupEnd(group), to: mark.id, kind: 'mark' } as const] : []),
      ...podRules.map((rule): GraphEdge => {
        const isMarked = mark !== undefined && rule.elements.some((element) => element.includes('fwmark'));
        return { from: isMarked ? mark.id : groupEnd(group), to: rule.id, kind: 'mark' };
      }),
      ...of('rule').flatMap((rule) => tableOf(rule).map((to): GraphEdge => ({ from: rule.id, to, kind: 'lookup' }))),
      ...of('table').flatMap((table) =>
        linksOf(table, facts, members).map((to): GraphEdge => ({ from: table.id, to, kind: 'route' })),
      ),
      ...(gateway === undefined
        ? []
        : [...of('eni'), ...of('nic').filter(isPrimary)].map(
            (link): GraphEdge => ({ from: link.id, to: gateway.id, kind: 'wire' }),
          )),
    ];
  });
  return [...withinBands, ...bridgeEdges(nodes)];
}

function isPrimary({ kind, title }: GraphNode): boolean {
  return kind === 'nic' && title.endsWith('(primary)');
}

/** The band of GlobalRoute Pods ends at the bridge: table main leads there, and the primary interface to the VPC's route. */
function bridgeEdges(nodes: readonly GraphNode[]): readonly GraphEdge[] {
  const [bridge, gateway] = (['nic', 'gateway'] as const).map((kind) =>
    nodes.find((node) => node.group === BRIDGE_GROUP && node.kind === kind),
  );
  const [main, primary] = [nodes.find(({ id }) => id === tableId(TABLE_MAIN)), nodes.find(isPrimary)];
  return [
    ...(bridge === undefined ? [] : [{ from: groupEnd(BRIDGE_GROUP), to: bridge.id, kind: 'wire' } as const]),
    ...(bridge === undefined || main === undefined ? [] : [{ from: main.id, to: bridge.id, kind: 'route' } as const]),
    ...(gateway === undefined || primary === undefined
      ? []
      : [{ from: primary.id, to: gateway.id, kind: 'wire' } as const]),
  ];
}

/** Reports whether a rule routes packets of Pods to their ENI: by mark, or each Pod by its source. */
function routesPods(rule: GraphNode): boolean {
  return rule.elements.some((element) => /^rule:\d:1536:/.test(element));
}

function tableFinder(facts: NodeFacts, members: readonly GraphNode[]): (rule: GraphNode) => readonly string[] {
  const ids = new Set(members.map(({ id }) => id));
  const byElement = new Map<string, number>();
  for (const [id, table] of ruleTables(facts)) byElement.set(id, table);
  return (rule) => {
    const tables = new Set(rule.elements.flatMap((element) => byElement.get(element) ?? []));
    return [...tables].map(tableId).filter((id) => ids.has(id));
  };
}

function ruleTables({ host }: NodeFacts): readonly (readonly [string, number])[] {
  return host.rules.filter(({ table }) => table !== 0).map((rule) => [ruleElement(rule), rule.table]);
}

function linksOf(table: GraphNode, { host }: NodeFacts, members: readonly GraphNode[]): readonly string[] {
  const number = Number(table.id.slice('table:'.length));
  if (number === 255) return [];
  const oifs = new Set(
    host.routes
      .filter((route) => route.table === number)
      .flatMap(({ oif, multipath }) => [oif ?? 0, ...(multipath ?? []).map((hop) => hop.oif)]),
  );
  return members
    .filter(
      ({ kind, elements }) =>
        (kind === 'eni' || kind === 'nic') && elements.some((element) => oifs.has(ifindexOf(element))),
    )
    .map(({ id }) => id);
}

function ifindexOf(element: string): number {
  return Number(/^link:(\d+)$/.exec(element)?.[1] ?? -1);
}

function unknownsOf({ agent, host, pods }: NodeFacts): Graph['unknowns'] {
  const unread = pods.flatMap(({ inside }) => (inside.kind === 'unknown' ? [inside] : []));
  const record = ifKnown(agent)?.node;
  return [
    ...(agent.kind === 'unknown' ? [{ what: "the agent's journal", why: agent.why, next: agent.next }] : []),
    ...(record?.kind === 'unknown'
      ? [{ what: "the agent's plan of the node", why: record.why, next: record.next }]
      : []),
    ...(host.nft.kind === 'unknown' ? [{ what: 'nftables', why: host.nft.why, next: host.nft.next }] : []),
    ...(unread[0] === undefined
      ? []
      : [{ what: `the inside of ${plural(unread.length, 'Pod')}`, why: unread[0].why, next: unread[0].next }]),
  ];
}

function titleOf({ agent }: NodeFacts): string {
  const content = ifKnown(agent);
  const name =
    content === undefined ? undefined : (ifKnown(content.node)?.nodeName ?? content.journal.supply?.nodeName);
  return name === undefined || name === '' ? 'This node' : `Node ${name}`;
}

function groupOfTable(table: number): string {
  return `eni:${table}`;
}

function groupOfPod({ eniTable, isGr }: ModelPod): string {
  if (isGr) return BRIDGE_GROUP;
  return eniTable === undefined ? OTHER_GROUP : groupOfTable(eniTable);
}
