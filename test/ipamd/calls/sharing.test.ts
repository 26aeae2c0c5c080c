import test from 'ava';
import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { CircuitBreakers } from '../../../ipamd/calls/circuit-breakers.ts';
import { CloudObserver } from '../../../ipamd/calls/cloud-observer.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const CLUSTER = 'cls-test0001';

const context = { priority: 'warm' as const, owner: 'n', signal: new AbortController().signal };

/** As many nodes as told, each with an ENI that only its tags tell. */
async function taggedEnis(nodes: number) {
  const clock = new VirtualClock();
  const subnets = [{ subnetId: 'subnet-podsa000', zone: 'z', cidr: '10.0.0.0/16' }];
  const host = new CloudHost({ vpcId: 'vpc-0000test', subnets, vpcEnis: 10_000 }, clock);
  const { state } = host.model;
  for (let index = 0; index < nodes; index++) {
    const subnet = state.subnet('subnet-podsa000');
    const tags = { 'tke-clusterId': CLUSTER, 'tke-nec-uid': `uid-${index}` };
    const order = { name: `eni-of-${index}`, description: '', groups: ['sg-1'], tags, isPrimary: false };
    state.makeEni({ ...order, subnet, ip: subnet.pool.take() }).state = 'AVAILABLE';
  }
  const cloud = createTencentCloud({ api: createInProcessApi(host), clock, random: seededRandom(1) });
  return { clock, host, eyes: new CloudObserver(cloud, clock, CLUSTER) };
}

test('CloudObserver: shares one sweep when a thousand nodes look at once', async (t) => {
  const { clock, host, eyes } = await taggedEnis(1_000);
  const looks = Array.from({ length: 1_000 }, (_, index) =>
    eyes.observe({ uid: `uid-${index}`, instanceId: undefined, eniIds: [], scope: 'own' }, context),
  );
  const sights = await clock.run(Promise.all(looks));
  t.deepEqual(
    sights.map((sight) => [...sight.enis.values()].map((eni) => eni.name)),
    Array.from({ length: 1_000 }, (_, index) => [`eni-of-${index}`]),
  );
  t.true((host.counts()['DescribeNetworkInterfaces'] ?? 0) <= 11);
});

test('CloudObserver: looks at one node alone without sweeping the cluster', async (t) => {
  const { clock, host, eyes } = await taggedEnis(1_000);
  const sight = await clock.run(
    eyes.observe({ uid: 'uid-7', instanceId: undefined, eniIds: ['eni-00000001'], scope: 'own' }, context),
  );
  t.deepEqual([...sight.enis.values()].map((eni) => [eni.name, eni.isForeign ?? false]).sort(), [
    ['eni-of-0', true],
    ['eni-of-7', false],
  ]);
  t.is(host.counts()['DescribeNetworkInterfaces'], 2);
});

test('CloudObserver: an ENI of the instance is own with the tags of ipamd, whatever the uid, and foreign with those of TKE alone', async (t) => {
  const { clock, host, eyes } = await taggedEnis(0);
  const { state } = host.model;
  state.addInstance({ instanceId: 'ins-of-the-node', cores: 8, subnetId: 'subnet-podsa000' });
  const ofTke = { 'tke-clusterId': CLUSTER, 'tke-created-eni': 'true' };
  const tagsOf = {
    'of a former object': { 'tke-clusterId': CLUSTER, 'tke-nec-uid': 'uid-of-a-deleted-object' },
    'of another cluster': { 'tke-clusterId': 'cls-other', 'tke-nec-uid': 'uid-anew' },
    'of TKE': ofTke,
    'without a uid': { ...ofTke, 'tke-nec-uid': '' },
  };
  for (const [name, tags] of Object.entries(tagsOf)) {
    const subnet = state.subnet('subnet-podsa000');
    const order = { name, description: '', groups: ['sg-1'], tags, isPrimary: false };
    const eni = state.makeEni({ ...order, subnet, ip: subnet.pool.take() });
    eni.state = 'AVAILABLE';
    state.bind(eni, 'ins-of-the-node', state.enisOf('ins-of-the-node').length);
  }
  const request = { uid: 'uid-anew', instanceId: 'ins-of-the-node', eniIds: [], scope: 'all' } as const;
  const { enis } = await clock.run(eyes.observe(request, context));
  t.deepEqual([...enis.values()].map((eni) => [eni.name, eni.isForeign ?? false]).sort(), [
    ['of TKE', true],
    ['of a former object', false],
    ['of another cluster', true],
    ['without a uid', true],
  ]);
});

test('CircuitBreakers: lets one try when its time is over, and the others wait for what comes of that', async (t) => {
  const clock = new VirtualClock();
  const book = new CircuitBreakers(clock);
  t.is(book.refusalOf('vpc-enis', 'a'), undefined);
  book.trip('vpc-enis', 60_000, 'too many');
  book.trip('vpc-enis', 60_000, 'too many');
  t.deepEqual(book.refusalOf('vpc-enis', 'a'), { message: 'too many', afterMs: 60_000 });
  await clock.advance(60_000);
  t.is(book.refusalOf('vpc-enis', 'a'), undefined);
  book.beginProbe('vpc-enis', 'a');
  t.is(book.refusalOf('vpc-enis', 'a'), undefined);
  t.not(book.refusalOf('vpc-enis', 'b'), undefined);
  book.trip('vpc-enis', 60_000, 'still too many');
  t.deepEqual(book.refusalOf('vpc-enis', 'b'), { message: 'still too many', afterMs: 120_000 });
  await clock.advance(120_000);
  book.beginProbe('vpc-enis', 'b');
  book.reset('vpc-enis');
  t.is(book.refusalOf('vpc-enis', 'a'), undefined);
  t.deepEqual(book.openKeys(), []);
});

test('CircuitBreakers: forgets what nobody asked for in hours: nodes and ENIs come and go for years', async (t) => {
  const clock = new VirtualClock();
  const book = new CircuitBreakers(clock);
  for (let hour = 0; hour < 48; hour++) {
    for (let node = 0; node < 200; node++)
      book.trip(`node/n-${hour}-${node}/call/CreateNetworkInterface`, 30_000, 'no');
    await clock.advance(3_600_000);
  }
  t.true(book.size <= 2_000, `${book.size} breakers`);
  book.trip('vpc-enis', 60_000, 'too many');
  t.is(book.refusalOf('vpc-enis', 'a')?.message, 'too many');
});
