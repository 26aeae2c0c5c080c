import test from 'ava';
import fc from 'fast-check';
import { assertLaw } from '../../support/law.ts';
import { AuditWorld, CLUSTER, intentOf, statusOf } from './audit-world.ts';

// Clouds of up to 24 ENIs of this and other clusters, on its instances, on others and on none, named or not, looked at
// while the cloud refuses, fails and takes its time.
const NODES = ['a1', 'b2', 'c3'];
const arbEni = fc.record({
  owner: fc.constantFrom('status', 'intent', 'name', 'unreadable', 'none', 'none', 'late'),
  node: fc.constantFrom(...NODES),
  place: fc.constantFrom('own', 'foreign', 'nowhere'),
  tags: fc.constantFrom('ours', 'ours', 'other', 'of TKE'),
});
const arbWorld = fc.record({
  seed: fc.nat(1_000),
  enis: fc.array(arbEni, { maxLength: 24 }),
  limit: fc.integer({ min: 1, max: 5 }),
  faults: fc.constantFrom<string | undefined>(
    undefined,
    'RequestLimitExceeded',
    'InternalError',
    'ResourceInsufficient',
  ),
});

test('Audit: never deletes what any object or intent names, and in the end everything else of ours', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.asyncProperty(arbWorld, async ({ seed, enis, limit, faults }) => {
        const world = new AuditWorld(seed);
        const nodes = new Map(NODES.map((name) => [name, world.addNode(name)]));
        world.host.model.state.addInstance({ instanceId: 'ins-foreign0', cores: 64, subnetId: 'subnet-a0000000' });
        world.host.model.state.instance('ins-foreign0').state = 'STOPPED';
        const said = new Map<string, { named: string[]; intents: unknown[]; loose: string[] }>(
          NODES.map((name) => [name, { named: [], intents: [], loose: [] }]),
        );
        const orphans = new Set<string>();
        const late: { readonly eniId: string; readonly node: string }[] = [];
        let ours = 0;
        for (const [index, { owner, node, place, tags }] of enis.entries()) {
          const name = `tke-${CLUSTER}-${index}`;
          const on = place === 'own' ? nodes.get(node) : place === 'foreign' ? 'ins-foreign0' : undefined;
          const eniId = world.addEni({
            name,
            tags: {
              'tke-clusterId': tags === 'other' ? 'cls-other' : CLUSTER,
              'tke-created-eni': 'true',
              ...(tags === 'of TKE' ? {} : { 'tke-nec-uid': `uid-${index}` }),
              'tke-node': node,
            },
            ...(on === undefined ? {} : { on }),
          });
          if (tags === 'ours') ours += 1;
          const says = said.get(node);
          if (owner === 'status') says?.named.push(eniId);
          else if (owner === 'intent') {
            says?.intents.push(intentOf({ id: `i${index}`, action: 'DeleteNetworkInterface', eniID: eniId }));
          } else if (owner === 'name') {
            says?.intents.push(intentOf({ id: `i${index}`, action: 'CreateNetworkInterface', resourceName: name }));
          } else if (owner === 'unreadable') says?.loose.push(eniId);
          else if (owner === 'late') late.push({ eniId, node });
          else if (place !== 'own' && tags === 'ours') orphans.add(eniId);
        }
        const publish = (resourceVersion: string): void => {
          for (const [name, { named, intents, loose }] of said) {
            const status = { instanceID: nodes.get(name), ...statusOf(named), intents: intents.slice(0, 16) };
            world.setNec(
              name,
              { status, ...(loose.length === 0 ? {} : { annotationOfSomebody: loose }) },
              resourceVersion,
            );
          }
        };
        publish('1');
        t.true([...world.faults.values()].every((count) => count === 0));
        const before = [...world.host.model.state.enis.keys()];
        if (faults !== undefined) world.host.faults.add({ fault: { kind: 'error', code: faults }, probability: 0.15 });
        const audit = world.audit({ orphanLimit: limit });
        await world.look(audit);
        // An owner that comes after the first look must be heard in the next.
        for (const { eniId, node } of late) said.get(node)?.named.push(eniId);
        publish('2');
        const isAlarming = orphans.size > 10 && orphans.size > ours / 2;
        const looks = 8 + 4 * Math.ceil(orphans.size / limit);
        for (let look = 0; look < looks; look++) await world.look(audit);
        const deleted = before.filter((eniId) => !world.has(eniId));
        t.deepEqual(deleted.toSorted(), isAlarming ? [] : [...orphans].toSorted());
      }),
    { numRuns: 200 },
  );
});
