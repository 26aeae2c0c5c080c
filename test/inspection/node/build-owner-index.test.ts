import test from 'ava';
import { buildOwnerIndex, type Owner, ownerText } from '../../../inspection/node/build-owner-index.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { nodeFixture } from '../../cli/commands/graph/node-fixture.ts';

const MODES = ['compact', 'per-pod'] as const;

function count(owners: readonly Owner[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(Object.groupBy(owners, ({ kind }) => kind)).map(([kind, list]) => [kind, list?.length ?? 0]),
  );
}

for (const ruleMode of MODES) {
  for (const hasAgent of [true, false]) {
    test(`buildOwnerIndex: knows whose all is, ${ruleMode}, ${hasAgent ? 'with' : 'without'} a journal`, (t) => {
      const facts = nodeFixture({ enis: 2, podsPerEni: 3, ruleMode, families: [4, 6], hasAgent });
      const owners = buildOwnerIndex(facts);
      t.is(owners.enis.length, 2);
      const ours = facts.host.routes.filter(({ protocol }) => protocol === 84);
      const routes = count(ours.map(owners.ownerOfRoute));
      t.is(
        routes['pod'],
        ruleMode === 'per-pod' ? 24 : 12,
        'six Pods of two addresses; beside each route in main one that refuses',
      );
      t.is(routes['foreign'], undefined);
      const rules = count(facts.host.rules.filter(({ protocol }) => protocol === 84).map(owners.ownerOfRule));
      t.is(rules['pod'], ruleMode === 'per-pod' ? 24 : undefined);
      t.is(rules['eni'], ruleMode === 'per-pod' ? 4 : 8, 'by mark and by primary address, both families');
      t.is(count(facts.host.links.map(owners.ownerOfLink))['pod'], 6);
      t.is(count(facts.host.links.map(owners.ownerOfLink))['eni'], 2);
    });
  }
}

test('buildOwnerIndex: tells who else may have made a route', (t) => {
  const facts: NodeFacts = nodeFixture({ enis: 1, podsPerEni: 1 });
  const [route] = facts.host.routes;
  const owners = buildOwnerIndex(facts);
  const textOf = (protocol: number, table = 254) =>
    ownerText(owners.ownerOfRoute({ ...(route ?? t.fail()), protocol, table, dst: '192.0.2.0/24' }));
  t.is(textOf(16), 'Foreign (dhcp)');
  t.is(textOf(12), 'Foreign (bird)');
  t.is(textOf(77), 'Foreign (protocol 77)');
  t.is(textOf(2), 'Kernel');
  t.is(textOf(3, 255), 'Kernel');
});

test('buildOwnerIndex: a foreign route in the table of an ENI is no route of the ENI', (t) => {
  const facts = nodeFixture({ enis: 1, podsPerEni: 1 });
  const owners = buildOwnerIndex(facts);
  const ofEni = facts.host.routes.find((route) => owners.ownerOfRoute(route).kind === 'eni');
  t.is(owners.ownerOfRoute({ ...(ofEni ?? t.fail()), protocol: 4 }).kind, 'foreign');
});

test('buildOwnerIndex: a veth that no lease has is still a Pod’s, by its alias', (t) => {
  const facts = nodeFixture({ enis: 1, podsPerEni: 1 });
  const [link] = facts.host.links.filter(({ kind }) => kind === 'veth');
  const leaked = { ...(link ?? t.fail()), ifindex: 999, ifname: 'enileaked', ifalias: 'tke-eni/dead/eth0' };
  t.deepEqual(buildOwnerIndex(facts).ownerOfLink(leaked), {
    kind: 'pod',
    key: 'dead/eth0',
    namespace: '',
    name: '',
    ips: [],
  });
});
