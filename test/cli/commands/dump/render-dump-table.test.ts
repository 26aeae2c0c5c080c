import test from 'ava';
import type { IpNames } from '../../../../cli/commands/dump/ip-names.ts';
import type { Topic } from '../../../../cli/commands/dump/render-dump-json.ts';
import { renderDumpTable } from '../../../../cli/commands/dump/render-dump-table.ts';
import { selectDump } from '../../../../cli/commands/dump/select-dump.ts';
import { buildOwnerIndex } from '../../../../inspection/node/build-owner-index.ts';
import type { NodeFacts } from '../../../../inspection/node/node-facts.ts';
import { matchesGolden } from '../../../support/golden.ts';
import { nodeFixture } from '../graph/node-fixture.ts';

const HOPS = [
  { oif: 2, hops: 1, gateway: '10.0.0.2', flags: 0 },
  { oif: 3, hops: 0, gateway: '10.0.0.3', flags: 16 },
];

const NODE = withStrangers(nodeFixture({ enis: 2, podsPerEni: 2, families: [4, 6] }));
const PER_POD = withStrangers(nodeFixture({ enis: 2, podsPerEni: 2, ruleMode: 'per-pod' }));
const TOPICS: readonly Topic[] = ['routes', 'rules', 'links', 'addrs', 'neigh'];

/** Adds what others make on a node. */
function withStrangers(facts: NodeFacts): NodeFacts {
  const [route] = facts.host.routes;
  const [rule] = facts.host.rules;
  if (route === undefined || rule === undefined) return facts;
  const { gateway: _gateway, oif: _oif, ...plain } = route;
  const routes: NodeFacts['host']['routes'] = [
    { ...plain, table: 254, protocol: 16, dst: '192.0.2.0/24', gateway: '10.0.0.1', oif: 2, priority: 100, flags: 0 },
    { ...plain, table: 254, protocol: 3, type: 6, dst: '198.51.100.0/24' },
    { ...plain, table: 77, protocol: 12, dst: '203.0.113.0/24', metrics: { mtu: 1400 }, multipath: HOPS },
    { ...plain, table: 255, protocol: 2, type: 2, scope: 254, dst: '10.0.0.4/32', oif: 2, prefsrc: '10.0.0.4' },
  ];
  const rules: NodeFacts['host']['rules'] = [
    { family: 2, tos: 0, action: 1, flags: 0, priority: 0, table: 255, protocol: 2, unknown: [] },
    { family: 2, tos: 0, action: 1, flags: 0, priority: 900, table: 77, dst: '203.0.113.0/24', unknown: [] },
    { family: 2, tos: 0, action: 6, flags: 2, priority: 901, table: 0, src: '10.0.0.0/8', protocol: 99, unknown: [] },
  ];
  const host = { ...facts.host, routes: [...facts.host.routes, ...routes], rules: [...facts.host.rules, ...rules] };
  return { ...facts, host };
}

const NUMBERS: Omit<IpNames, 'link'> = {
  table: String,
  protocol: (protocol) => ({ 2: 'kernel', 3: 'boot', 12: 'bird', 16: 'dhcp' })[protocol] ?? String(protocol),
  scope: (scope) => ({ 0: 'global', 253: 'link', 254: 'host' })[scope] ?? String(scope),
  group: (group) => (group === 0 ? 'default' : String(group)),
  dsfield: String,
  realm: String,
  ipProtocol: String,
};

function render(
  facts: NodeFacts,
  topic: Topic,
  width: number | undefined,
  more: { pod?: string; isAll?: boolean } = {},
) {
  const owners = buildOwnerIndex(facts);
  const names = new Map(facts.host.links.map(({ ifindex, ifname }) => [ifindex, ifname]));
  const { namespaces } = selectDump(facts, owners, { pod: more.pod });
  return namespaces
    .map((part) => {
      const links =
        part.pod === undefined ? names : new Map(part.facts.links.map((link) => [link.ifindex, link.ifname]));
      const view = {
        isAll: more.isAll ?? false,
        isColored: false,
        tableNames: facts.host.tableNames,
        ...(width === undefined ? {} : { width }),
      };
      return renderDumpTable(
        topic,
        part,
        { ...NUMBERS, link: (index) => links.get(index) ?? `if${index}` },
        owners,
        view,
      );
    })
    .join('\n');
}

for (const topic of TOPICS) {
  for (const width of [80, 160]) {
    test(`${topic}: fits ${width} columns`, (t) => {
      const text = render(NODE, topic, width);
      t.true(text.split('\n').every((line) => [...line].length <= width));
      matchesGolden(t, import.meta.url, `${topic}-${width}.txt`, text);
    });
  }
  test(`${topic}: shows all as wide as it is`, (t) => {
    matchesGolden(t, import.meta.url, `${topic}-wide.txt`, render(NODE, topic, undefined, { isAll: true }));
  });
  test(`${topic}: shows one Pod, inside too`, (t) => {
    matchesGolden(t, import.meta.url, `${topic}-pod.txt`, render(NODE, topic, 100, { pod: 'default/web-1' }));
  });
}

test('rules: has the two rules of each Pod with the Pods in per-pod mode', (t) => {
  matchesGolden(t, import.meta.url, 'rules-per-pod.txt', render(PER_POD, 'rules', 100));
});

test('routes: a node without a journal has container ids and interfaces for names', (t) => {
  const facts = nodeFixture({ enis: 1, podsPerEni: 2, hasAgent: false });
  matchesGolden(t, import.meta.url, 'routes-no-journal.txt', render(facts, 'routes', 120));
});
