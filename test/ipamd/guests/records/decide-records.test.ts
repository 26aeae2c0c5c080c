import test from 'ava';
import fc from 'fast-check';
import { vpcIp, vpcIpName } from '../../../../crd/vpc-ip.ts';
import { vpcIpClaim } from '../../../../crd/vpc-ip-claim.ts';
import { podKeyOf } from '../../../../ipamd/cache/pod-facts.ts';
import { decideRecords } from '../../../../ipamd/guests/records/decide-records.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';
import { decodeOrThrow } from '../../../../runtime/decode.ts';
import { assertLaw } from '../../../support/law.ts';
import { RecordsWorld, samplePod, sampleStatus } from './records-world.ts';

const NEVER = { 'tke.cloud.tencent.com/vpc-ip-claim-delete-policy': 'Never' };

function worldOf(pods = [samplePod()], ips = ['10.0.0.5', '10.0.0.6']): RecordsWorld {
  const world = new RecordsWorld();
  world.nodes.set('n1', sampleStatus(ips));
  for (const pod of pods) world.addPod(pod);
  return world;
}

test('renderClaim, renderVip: what is written passes the schema and says everything', (t) => {
  const world = worldOf();
  world.settle(['n1']);
  const claim = decodeOrThrow(vpcIpClaim, world.claims.get('default/web-0'), 'claim');
  t.like(claim, {
    spec: { podUID: 'uid-1', mode: 'route-eni' },
    status: { phase: 'Bound', vpcIPs: ['10.0.0.5'], ips: ['10.0.0.5'], eniID: 'eni-a', nodeName: 'n1' },
  });
  const vip = decodeOrThrow(vpcIp, world.vips.get('10.0.0.5'), 'vip');
  t.like(vip.metadata.labels, { 'tke.cloud.tencent.com/node-name': 'n1' });
  t.like(vip, {
    spec: {
      type: 'Pod',
      ip: '10.0.0.5',
      claimRef: { namespace: 'default', name: 'web-0', uid: 'uid-1' },
      subnetID: 'subnet-a',
      nodeName: 'n1',
    },
    status: { phase: 'Assigned', eniID: 'eni-a', assignmentID: 'a-10.0.0.5' },
  });
  t.deepEqual(world.claims.get('default/web-0')?.metadata.ownerReferences, [
    { apiVersion: 'v1', kind: 'Pod', name: 'web-0', uid: 'uid-1' },
  ]);
});

test('decideRecords: the claim of a Pod that failed ends as soon as another Pod has its address', (t) => {
  const world = worldOf();
  t.true(world.settle(['n1']));
  // The Pod object stays: nothing collects the claim.
  world.removePod('default/web-0', false);
  t.true(world.settle(['n1']));
  t.deepEqual([...world.claims.keys()], ['default/web-0'], 'no write for what is mostly collected');
  world.addPod(samplePod({ name: 'web-1', uid: 'uid-2' }));
  t.true(world.settle(['n1']));
  t.deepEqual([...world.claims.keys()], ['default/web-1']);
  t.is(decodeOrThrow(vpcIp, world.vips.get('10.0.0.5'), 'vip').spec.claimRef?.name, 'web-1');
});

test('decideRecords: nothing for a Pod whose address is none of its node’s ENIs, that is leaving, or in static mode', (t) => {
  t.deepEqual(worldOf([samplePod({ ips: ['172.16.0.9'] })]).step('n1'), []);
  t.deepEqual(worldOf([samplePod({ ips: [] })]).step('n1'), []);
  t.deepEqual(worldOf([samplePod({ isLeaving: true })]).step('n1'), []);
  t.deepEqual(worldOf([samplePod({ annotations: NEVER })]).step('n1'), []);
  const world = worldOf();
  world.nodes.delete('n1');
  t.deepEqual(world.step('n1'), []);
});

test('decideRecords: both families have an address each, and one claim', (t) => {
  const world = worldOf([samplePod({ ips: ['10.0.0.5', 'fd00::5'] })]);
  const status = sampleStatus([]);
  const addresses = [{ ip: '10.0.0.5', assignmentID: 'a', state: 'Assigned' as const, pairedIP: 'fd00::5' }];
  world.nodes.set('n1', { eniInfos: (status.eniInfos ?? []).map((eni) => ({ ...eni, addresses })) });
  t.true(world.settle(['n1']));
  t.deepEqual(world.writes, ['create-claim', 'create-vip', 'create-vip']);
  t.deepEqual([...world.vips.keys()].sort(), ['10.0.0.5', vpcIpName('fd00::5')].sort());
});

test('decideRecords: an exclusive ENI’s own address is its Pod’s', (t) => {
  const world = worldOf([samplePod({ ips: ['10.0.0.77'] })]);
  const [eni] = sampleStatus([]).eniInfos ?? [];
  t.truthy(eni);
  if (eni === undefined) return;
  world.nodes.set('n1', { eniInfos: [{ ...eni, mode: 'direct-eni', primaryIP: '10.0.0.77', assignmentID: 'd1' }] });
  t.true(world.settle(['n1']));
  t.like(world.claims.get('default/web-0'), { spec: { mode: 'direct-eni' } });
  t.like(world.vips.get('10.0.0.77'), { status: { assignmentID: 'd1' } });
});

test('decideRecords: the namesake of a Pod takes its claim over where the collector has not been yet', (t) => {
  const world = worldOf();
  world.settle(['n1']);
  world.removePod('default/web-0', false);
  world.addPod(samplePod({ uid: 'uid-2', ips: ['10.0.0.6'] }));
  world.writes.length = 0;
  t.true(world.settle(['n1']));
  t.deepEqual(world.writes.toSorted(), ['create-vip', 'delete-vip', 'update-claim']);
  const claim = world.claims.get('default/web-0');
  t.like(claim, { spec: { podUID: 'uid-2' }, status: { ips: ['10.0.0.6'] } });
  t.is(claim?.metadata.ownerReferences?.[0]?.uid, 'uid-2');
});

test('decideRecords: a Pod between two sandboxes keeps its records; with another address they change', (t) => {
  const world = worldOf();
  world.settle(['n1']);
  world.addPod(samplePod({ ips: [] }));
  t.deepEqual(world.step('n1'), []);
  world.addPod(samplePod({ ips: ['10.0.0.6'] }));
  t.deepEqual(
    world.step('n1').map((write) => write.kind),
    ['delete-vip', 'update-claim', 'create-vip'],
  );
});

test('decideRecords: a claim that outlived its Pod waits for the collector, and is deleted when that does not come', (t) => {
  const world = worldOf();
  world.settle(['n1']);
  world.removePod('default/web-0', false);
  world.settle(['n1']);
  t.deepEqual(decideRecords(world.view('n1')), { writes: [], waiting: ['default/web-0'] });
  t.deepEqual(
    world.step('n1', new Set(['default/web-0'])).map((write) => write.kind),
    ['delete-claim'],
  );
});

test('decideRecords: the records of a Pod whose address is on no ENI any more end, but not in the first minute', (t) => {
  for (const [ips, written] of [
    [[], ['delete-vip', 'delete-claim']],
    [['10.0.0.5'], ['delete-vip']],
  ] as const) {
    const world = worldOf([samplePod({ ips: ['10.0.0.5', '10.0.0.6'] })]);
    world.settle(['n1']);
    const before = world.nodes.get('n1') ?? {};
    world.nodes.set('n1', sampleStatus(ips));
    t.true(world.settle(['n1']));
    t.deepEqual(decideRecords(world.view('n1')), { writes: [], waiting: ['default/web-0'] });
    // What the node has is not known, or the Pod is between two sandboxes.
    world.nodes.delete('n1');
    t.deepEqual(decideRecords(world.view('n1', new Set(['default/web-0']))), { writes: [], waiting: [] });
    world.nodes.set('n1', sampleStatus(ips));
    const kinds = new Set(world.step('n1', new Set(['default/web-0'])).map(({ kind }) => kind));
    t.deepEqual([...kinds], written);
    t.deepEqual([...world.vips.keys()], ips);
    t.deepEqual(decideRecords(world.view('n1')), { writes: [], waiting: [] });
    world.nodes.set('n1', before);
    t.true(world.settle(['n1']));
    t.deepEqual([...world.vips.keys()].toSorted(), ['10.0.0.5', '10.0.0.6']);
  }
});

const FOREIGN: KubeObject = {
  apiVersion: 'networking.tke.cloud.tencent.com/v1',
  kind: 'VpcIP',
  metadata: { name: '10.0.0.5', uid: 'theirs', resourceVersion: '1' },
};

test('decideRecords: touches no object without its mark, and writes no address of a claim that is not its own', (t) => {
  const world = worldOf();
  world.vips.set('10.0.0.5', FOREIGN);
  t.true(world.settle(['n1']));
  t.deepEqual(world.writes, ['create-claim']);
  t.is(world.vips.get('10.0.0.5'), FOREIGN);
  const other = worldOf();
  other.claims.set('default/web-0', { ...FOREIGN, metadata: { name: 'web-0', namespace: 'default' } });
  t.deepEqual(other.step('n1'), []);
});

// Random histories over 2 nodes, 4 addresses, 3 Pod names; addresses move between nodes as the cloud may move them.
const NODES = ['n1', 'n2'];
const IPS = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'];
const NAMES = ['a', 'b', 'c'];
const arbEvent = fc.oneof(
  fc.record({ kind: fc.constant('run'), name: fc.constantFrom(...NAMES), slot: fc.nat(3) }),
  fc.record({ kind: fc.constant('gone'), name: fc.constantFrom(...NAMES), slot: fc.nat(3) }),
  fc.record({ kind: fc.constant('slow-gone'), name: fc.constantFrom(...NAMES), slot: fc.nat(3) }),
  fc.record({ kind: fc.constant('move'), name: fc.constantFrom(...NAMES), slot: fc.nat(3) }),
  fc.record({ kind: fc.constant('step'), name: fc.constantFrom(...NAMES), slot: fc.nat(1) }),
);

test('decideRecords: after any history there is exactly one record for each Pod, and nobody else’s object is touched', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(fc.array(arbEvent, { maxLength: 40 }), (events) => {
        const world = new RecordsWorld();
        const homes = new Map(IPS.map((ip, index) => [ip, NODES[index % 2] ?? '']));
        const foreign = { ...FOREIGN, metadata: { ...FOREIGN.metadata, name: '10.9.9.9' } };
        world.vips.set('10.9.9.9', foreign);
        const place = (): void => {
          for (const node of NODES)
            world.nodes.set(
              node,
              sampleStatus(
                IPS.filter((ip) => homes.get(ip) === node),
                `eni-${node}`,
              ),
            );
        };
        place();
        let serial = 0;
        for (const { kind, name, slot } of events) {
          const key = `default/${name}`;
          const ip = IPS[slot] ?? '';
          const isTaken = [...world.pods.values()].some((pod) => pod.ips.includes(ip));
          if (kind === 'run' && !world.pods.has(key) && !isTaken) {
            serial += 1;
            world.addPod(samplePod({ name, uid: `uid-${serial}`, nodeName: homes.get(ip) ?? '', ips: [ip] }));
          } else if (kind === 'gone') world.removePod(key);
          else if (kind === 'slow-gone') world.removePod(key, false);
          else if (kind === 'move' && !isTaken) {
            homes.set(ip, homes.get(ip) === 'n1' ? 'n2' : 'n1');
            place();
          } else if (kind === 'step') world.step(NODES[slot] ?? '');
        }
        const lingering = new Set(NAMES.map((name) => `default/${name}`));
        if (!world.settle(NODES, lingering)) return false;
        const expected = [...world.pods.values()].flatMap((pod) =>
          pod.ips.map((ip) => `${ip} ${podKeyOf(pod)} ${pod.uid}`),
        );
        const found = world
          .vipFacts()
          .filter((vip) => vip.isRecord)
          .map((vip) => `${vip.ip} ${vip.podKey} ${vip.podUid}`);
        const claims = world.claimFacts().map((claim) => `${claim.ips.join()} ${claim.key} ${claim.podUid}`);
        t.deepEqual(found.toSorted(), expected.toSorted());
        t.deepEqual(claims.toSorted(), expected.toSorted());
        return world.vips.get('10.9.9.9') === foreign;
      }),
    { numRuns: 300 },
  );
});

test('decideRecords: a record that is being deleted is not deleted again', (t) => {
  const world = worldOf();
  t.true(world.settle(['n1']));
  world.removePod('default/web-0', false);
  for (const objects of [world.vips, world.claims])
    for (const [key, object] of objects)
      objects.set(key, { ...object, metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  t.deepEqual(decideRecords(world.view('n1', new Set(['default/web-0']))).writes, []);
});

test('decideRecords: without claims a Pod has its addresses alone, and they say whose they are', (t) => {
  const world = worldOf();
  world.hasClaims = false;
  t.true(world.settle(['n1']));
  t.deepEqual(world.writes, ['create-vip']);
  t.is(world.claims.size, 0);
  t.like(world.vips.get('10.0.0.5'), { spec: { claimRef: { namespace: 'default', name: 'web-0', uid: 'uid-1' } } });
  world.removePod('default/web-0');
  t.true(world.settle(['n1']));
  t.deepEqual(world.writes, ['create-vip', 'delete-vip']);
});

test('decideRecords: when claims are kept no more, one that is true stays with its Pod, and one of a former Pod goes', (t) => {
  const world = worldOf();
  t.true(world.settle(['n1']));
  world.hasClaims = false;
  t.deepEqual(world.step('n1'), []);
  world.removePod('default/web-0', false);
  world.addPod(samplePod({ uid: 'uid-2', ips: ['10.0.0.6'] }));
  world.writes.length = 0;
  t.true(world.settle(['n1']));
  t.deepEqual(world.writes.toSorted(), ['create-vip', 'delete-claim', 'delete-vip']);
  t.is(world.claims.size, 0);
  world.hasClaims = true;
  t.true(world.settle(['n1']));
  t.like(world.claims.get('default/web-0'), { spec: { podUID: 'uid-2' } });
});
