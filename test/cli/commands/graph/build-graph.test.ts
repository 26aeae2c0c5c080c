import test from 'ava';
import { buildGraph } from '../../../../cli/commands/graph/build-graph.ts';
import { finding } from '../../../../inspection/catalogue/catalogue.ts';
import { known, unknown } from '../../../../inspection/node/known.ts';
import { BLOCK, CBR0_IFINDEX, grNode } from '../../../inspection/node/gr-node.ts';
import { brokenNode, drawingOf } from './drawing-fixture.ts';
import { explanationFixture } from './explanation-fixture.ts';
import { nodeFixture } from './node-fixture.ts';

const NOTHING = { explanations: [], findings: [] };

test('buildGraph: has a box for each Pod, veth, mark, rule, table, ENI and NIC of a node', (t) => {
  const facts = nodeFixture({ enis: 2, podsPerEni: 3 });
  const graph = buildGraph(facts, NOTHING);
  const count = (kind: string) => graph.nodes.filter((node) => node.kind === kind).length;
  t.deepEqual(
    ['pod', 'veth', 'mark', 'table', 'eni', 'nic', 'gateway', 'settings'].map(count),
    [6, 6, 3, 7, 2, 1, 3, 1],
  );
  t.is(count('rule'), facts.host.rules.length);
  t.deepEqual(
    graph.groups.map(({ id }) => id),
    ['node', 'eni:4003', 'eni:4004'],
  );
  t.true(graph.nodes.every(({ state }) => state === 'ok'));
  t.is(new Set(graph.nodes.map(({ id }) => id)).size, graph.nodes.length, 'ids are unique');
});

test('buildGraph: every edge joins boxes or groups that there are', (t) => {
  for (const ruleMode of ['compact', 'per-pod'] as const) {
    const graph = buildGraph(nodeFixture({ enis: 3, podsPerEni: 5, ruleMode, families: [4, 6] }), NOTHING);
    const ends = new Set([...graph.nodes.map(({ id }) => id), ...graph.groups.map(({ id }) => `group:${id}`)]);
    t.deepEqual(
      graph.edges.filter(({ from, to }) => !ends.has(from) || !ends.has(to)),
      [],
    );
    for (const table of ['table:4003', 'table:4004', 'table:4005']) {
      t.true(
        graph.edges.some(({ to }) => to === table) && graph.edges.some(({ from }) => from === table),
        `${ruleMode} ${table}`,
      );
    }
  }
});

test('buildGraph: rules that differ in the Pod alone are one box, and each of them is found in it', (t) => {
  const facts = nodeFixture({ enis: 1, podsPerEni: 40, ruleMode: 'per-pod' });
  const rules = buildGraph(facts, NOTHING).nodes.filter(({ kind }) => kind === 'rule');
  t.true(rules.length < 10, String(rules.length));
  const merged = rules.filter(({ title }) => title.endsWith('each Pod'));
  t.deepEqual(
    merged.map(({ elements }) => elements.length),
    [40, 40],
  );
});

test('buildGraph: a rule that is not there gets a box where it belongs, and the Pods that lack it are broken', (t) => {
  const graph = drawingOf(brokenNode());
  const missing = graph.nodes.filter(({ state }) => state === 'missing');
  t.deepEqual(
    missing.map(({ group, title }) => [group, title]),
    [['eni:4003', '1536: fwmark 0x10000/0xff0000']],
  );
  t.is(graph.nodes.filter(({ kind, state }) => kind === 'pod' && state === 'broken').length, 4);
  const path = graph.paths.find(({ direction }) => direction === 'from-pod');
  t.is(path?.steps.find(({ verdict }) => verdict === 'broken')?.node, missing[0]?.id);
  t.is(graph.findings.length, 1, 'four Pods tell it, it is one finding');
});

test('buildGraph: what explain and diff both found is said once', (t) => {
  const facts = brokenNode();
  const [pod] = facts.pods;
  if (pod === undefined) throw new Error('no Pod');
  const explained = explanationFixture(facts, pod, true);
  const again = explained.findings.filter(({ id }) => id === 'rule-missing');
  const other = finding('rule-stale', { what: 'a rule is stale', fix: [], subjects: ['rule:4:1537:from 10.0.2.2'] });
  const graph = buildGraph(facts, { explanations: [explained], findings: [...again, other] });
  t.is(again.length, 1);
  t.deepEqual(
    graph.findings.map(({ id }) => id),
    ['rule-missing', 'rule-stale'],
  );
  t.is(graph.nodes.find(({ title }) => title === '1537: from 10.0.2.2')?.state, 'warning');
});

test('buildGraph: works from the kernel alone, and says what is not known', (t) => {
  const graph = buildGraph(nodeFixture({ enis: 2, podsPerEni: 2, hasAgent: false }), NOTHING);
  t.is(graph.title, 'This node');
  t.deepEqual(
    graph.groups.map(({ id }) => id),
    ['node', 'eni:4003', 'eni:4004'],
  );
  t.is(graph.nodes.filter(({ kind, group }) => kind === 'pod' && group !== 'other').length, 4);
  t.deepEqual(
    graph.unknowns.map(({ what }) => what),
    ["the agent's journal"],
  );
  const facts = nodeFixture({ enis: 1, podsPerEni: 1 });
  const blind = buildGraph(
    { ...facts, host: { ...facts.host, nft: unknown('nft is not there', 'install it') } },
    NOTHING,
  );
  t.true(blind.unknowns.some(({ what }) => what === 'nftables'));
  t.deepEqual([...new Set(blind.nodes.filter(({ kind }) => kind === 'mark').map(({ state }) => state))], ['unknown']);
});

test('buildGraph: a Pod without its veth, and an ENI that is gone, are shown as missing', (t) => {
  const facts = nodeFixture({ enis: 1, podsPerEni: 1 });
  const links = facts.host.links.filter(({ ifname }) => ifname === 'lo' || ifname === 'eth0');
  const graph = buildGraph({ ...facts, host: { ...facts.host, links } }, NOTHING);
  t.deepEqual(
    graph.nodes
      .filter(({ state }) => state === 'missing')
      .map(({ kind }) => kind)
      .sort(),
    ['eni', 'veth'],
  );
});

test('buildGraph: GlobalRoute Pods have a band with their bridge and the route of the VPC', (t) => {
  const facts = grNode();
  const graph = buildGraph(facts, NOTHING);
  t.like(
    graph.groups.find(({ id }) => id === 'bridge'),
    { title: `podCIDR ${BLOCK}`, subtitle: '1 Pod' },
  );
  const ofBand = graph.nodes.filter(({ group }) => group === 'bridge');
  t.deepEqual(
    ofBand.map(({ kind, title, state }) => `${kind} ${title} ${state}`).toSorted(),
    ofBand.map(({ kind, title }) => `${kind} ${title} ok`).toSorted(),
  );
  t.deepEqual(ofBand.map(({ kind }) => kind).toSorted(), ['gateway', 'nic', 'pod', 'veth']);
  const edges = graph.edges.map(({ from, to }) => `${from} ${to}`);
  t.true(edges.includes(`group:bridge link:${CBR0_IFINDEX}`));
  t.true(edges.includes(`table:254 link:${CBR0_IFINDEX}`));

  const links = facts.host.links.filter(({ ifname }) => ifname !== 'cbr0');
  const without = buildGraph({ ...facts, host: { ...facts.host, links } }, NOTHING);
  t.is(without.nodes.find(({ title }) => title === 'cbr0')?.state, 'missing');
});

test('buildGraph: marks the links that the flowtable has', (t) => {
  const facts = nodeFixture({ enis: 1, podsPerEni: 2 });
  const pod = facts.host.links.find(({ ifindex }) => ifindex === facts.pods[0]?.hostIfindex);
  const nft = known({ objects: [], ourTable: undefined, flowLinks: ['eth0', 'eth1', pod?.ifname ?? ''] });
  const graph = buildGraph({ ...facts, host: { ...facts.host, nft } }, NOTHING);
  const marked = graph.nodes
    .filter(({ facts: all }) => all.some(({ rows }) => rows.includes('fast path: in the flowtable')))
    .map(({ kind, elements }) => `${kind} ${elements.find((id) => id.startsWith('link:'))}`);
  t.deepEqual(marked.toSorted(), ['eni link:3', 'nic link:2', `veth link:${pod?.ifindex}`]);
});
