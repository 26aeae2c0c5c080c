/** Load balancers whose Service went without their release, and TKE's own controller beside ours. */
import test from 'ava';
import type { CallContext } from '../../../cloud/cloud.ts';
import { findTkeTraces } from '../../../cloud-controller-manager/services/find-tke-traces.ts';
import { CONFIG_MAPS } from '../../../kube/resource-types.ts';
import { CLUSTER, ServiceWorld } from './service-world.ts';

const MINUTE_MS = 60_000;
const DONE_MS = 40_000;
/** Three sweeps, with one of them an hour after the others. */
const SWEPT_MS = 90 * MINUTE_MS;
const PERSON: CallContext = { priority: 'warm', owner: 'person', signal: new AbortController().signal };
const DELETES = '--delete-orphan-load-balancers=true';

async function withOrphans(names: readonly string[], ...flags: readonly string[]): Promise<ServiceWorld> {
  const world = await ServiceWorld.start({ flags });
  await world.join('n1');
  for (const name of [...names, 'stays']) await world.create(name);
  await world.advance(DONE_MS);
  for (const name of names) await world.loseService(name);
  return world;
}

function ofOthers(world: ServiceWorld, ids: readonly string[]) {
  return world.balancers().filter(({ loadBalancerId }) => ids.includes(loadBalancerId));
}

test('a load balancer without its Service is reported, and stays', async (t) => {
  const world = await withOrphans(['gone']);
  await world.advance(7 * MINUTE_MS);
  t.deepEqual(world.events('OrphanLoadBalancer'), [], 'it is too young');
  await world.advance(SWEPT_MS);
  t.is(world.balancers().length, 2);
  const [orphan] = world.balancers();
  const messages = world.events('OrphanLoadBalancer');
  t.regex(
    messages.join(),
    new RegExp(`${orphan?.loadBalancerId} \\(${CLUSTER}_default_gone, .*does not exist any more`),
  );
  t.false(messages.join().includes('_stays'));
  t.regex(await world.world.metrics(), /_orphan_load_balancers 1/);
  t.regex(await world.world.metrics(), /_orphan_load_balancer_outcomes_total\{outcome="reported"\} [1-9]/);
  await world.stop();
});

test('with the flag it is deleted: so many in a sweep, none that is protected, and none of others', async (t) => {
  const world = await withOrphans(['a', 'b', 'c', 'd'], DELETES, '--orphan-load-balancer-limit=2');
  const owner = (cluster: string) => ({ 'tke-eni-owner': `${cluster}/service/u-1`, 'tke-clusterId': cluster });
  const others = [
    await world.buy({ tags: owner('cls-other') }),
    await world.buy({ tags: { 'tke-clusterId': CLUSTER, 'tke-createdBy-flag': 'yes', 'tke-lb-serviceuuid': 'u-2' } }),
    await world.buy({ tags: { ...owner('cls-other'), 'tke-clusterId': CLUSTER } }),
    await world.buy({ tags: {} }),
    // A person put a listener on what was of a Service.
    await world.buy({ tags: owner(CLUSTER) }),
  ];
  const before = ofOthers(world, others);
  const guarded = world.balancers().find(({ name }) => name.endsWith('_d'));
  await world.protect(guarded?.loadBalancerId ?? '', true);
  await world.advance(77 * MINUTE_MS);
  const left = world.balancers().filter(({ name }) => /_[abcd]$/.test(name));
  t.is(left.length, 2, 'two in a sweep');
  await world.advance(2 * SWEPT_MS);
  t.deepEqual(
    world.balancers().flatMap(({ name }) => (name.startsWith(CLUSTER) ? [name] : [])),
    [`${CLUSTER}_default_d`, `${CLUSTER}_default_stays`],
  );
  t.deepEqual(ofOthers(world, others), before);
  t.is(world.events('OrphanLoadBalancerDeleted').length, 3);
  t.regex(world.events('OrphanLoadBalancer').join(), /protected against deletion/);
  t.regex(world.events('OrphanLoadBalancer').join(), /\(of-a-person\) is of somebody else/);
  await world.stop();
});

test('what the cloud takes for a mistake is reported, and deleted when the cloud does it', async (t) => {
  const world = await withOrphans(['gone'], DELETES);
  const code = 'FailedOperation.TargetGroupCheckRisk';
  const { faults } = world.world.scene.host;
  const end = faults.add({ fault: { kind: 'error', code }, probability: 1, actions: ['DeleteLoadBalancer'] });
  await world.advance(SWEPT_MS);
  t.is(world.balancers().length, 2);
  t.regex(world.events('OrphanLoadBalancer').join(), new RegExp(`could not be deleted.*${code}`));
  end();
  await world.advance(SWEPT_MS);
  t.is(world.balancers().length, 1);
  await world.stop();
});

for (const isDeleted of [false, true]) {
  test(`the security group of source ranges goes after its load balancer: ${isDeleted ? 'deleted' : 'reported'}`, async (t) => {
    const world = await ServiceWorld.start({ flags: isDeleted ? [DELETES] : [] });
    await world.join('n1');
    for (const name of ['gone', 'stays'])
      await world.create(name, { spec: { loadBalancerSourceRanges: ['10.0.0.0/8'] } });
    await world.advance(DONE_MS);
    const { clock, host } = world.world.scene;
    const { made } = host.model.state.securityGroups;
    const group = { description: '', tags: { 'tke-eni-owner': 'cls-other/service/u-1', 'tke-clusterId': 'cls-other' } };
    await clock.run(world.cloud.groups.create({ ...group, name: 'of-another-cluster' }, PERSON));
    const ofTke = { 'tke-clusterId': CLUSTER, 'tke-createdBy-flag': 'yes', 'tke-lb-serviceuuid': 'u-2' };
    await clock.run(world.cloud.groups.create({ ...group, name: 'of-tke', tags: ofTke }, PERSON));
    await world.loseService('gone');
    if (!isDeleted) {
      await world.advance(SWEPT_MS);
      t.notRegex(world.events('OrphanLoadBalancer').join(), /security group/, 'its load balancer has it');
      const lost = world.balancers().find(({ name }) => name.endsWith('_gone'));
      await world.discard(lost?.loadBalancerId ?? '');
    }
    await world.advance(3 * SWEPT_MS);
    const messages = world.events(isDeleted ? 'OrphanLoadBalancerDeleted' : 'OrphanLoadBalancer').join('\n');
    t.regex(messages, new RegExp(`security group sg-\\w+ \\(${CLUSTER}_default_gone\\) was made for source ranges`));
    t.notRegex(messages, /default_stays|of-another|of-tke/);
    const names = [...made.values()].map(({ name }) => name);
    const stays = [`${CLUSTER}_default_stays`, 'of-another-cluster', 'of-tke'];
    t.deepEqual(names.toSorted(), [...(isDeleted ? [] : [`${CLUSTER}_default_gone`]), ...stays]);
    await world.stop();
  });
}

test('an orphaned security group goes also while there is always a load balancer that waits for its second sweep', async (t) => {
  const world = await ServiceWorld.start({ flags: [DELETES] });
  await world.join('n1');
  const lost = Array.from({ length: 12 }, (_, at) => `s${at}`);
  for (const name of [...lost, 'x0', 'x1', 'x2', 'x3']) await world.create(name);
  await world.advance(DONE_MS);
  const { clock, host } = world.world.scene;
  const tags = { 'tke-eni-owner': `${CLUSTER}/service/u-gone`, 'tke-clusterId': CLUSTER };
  await clock.run(world.cloud.groups.create({ description: '', name: 'orphaned', tags }, PERSON));
  await world.advance(20 * MINUTE_MS);
  for (const name of lost) {
    await world.loseService(name);
    await world.advance(10 * MINUTE_MS);
  }
  const names = [...host.model.state.securityGroups.made.values()].map(({ name }) => name);
  t.false(names.includes('orphaned'));
  await world.stop();
});

test('none is deleted when no load balancer of the cluster has its Service', async (t) => {
  const world = await withOrphans(['a', 'b'], DELETES);
  await world.loseService('stays');
  await world.advance(3 * SWEPT_MS);
  t.is(world.balancers().length, 3);
  t.regex(world.events('OrphanLoadBalancer').join(), /no load balancer of this cluster has its Service/);
  await world.create('new');
  await world.advance(3 * SWEPT_MS);
  t.deepEqual(
    world.balancers().map(({ name }) => name),
    [`${CLUSTER}_default_new`],
  );
  await world.stop();
});

test("traces of TKE's controller: its settings, or a Service that it compared within a day", (t) => {
  const nowMs = Date.parse('2026-01-04T08:24:43Z');
  const service = (annotations: Readonly<Record<string, string>>) => ({
    metadata: { name: 'kubernetes', namespace: 'default', annotations },
  });
  const at = (time: string) => [service({ 'service.cloud.tencent.com/sync-end-time': time })];
  const fresh = at('2026-01-04T16:24:43+08:00');
  t.regex(findTkeTraces(fresh, 'unknown', nowMs) ?? '', /default\/kubernetes has/);
  t.is(findTkeTraces(fresh, 'absent', nowMs), undefined, 'anybody can write a date');
  t.regex(findTkeTraces([], 'present', nowMs) ?? '', /tke-service-controller-config is there/);
  for (const time of ['2026-01-02T16:24:43+08:00', '2027-01-04T16:24:43+08:00', 'soon', '', '1'.repeat(500)])
    t.is(findTkeTraces(at(time), 'unknown', nowMs), undefined, time);
  t.is(findTkeTraces([service({ 'service.kubernetes.io/loadbalance-id': 'lb-1' })], 'unknown', nowMs), undefined);
});

test("while TKE's controller is at work nothing is read or changed, and that is loud", async (t) => {
  const world = await ServiceWorld.start({ isSeedRole: true });
  await world.join('n1');
  const { clock, host } = world.world.scene;
  const syncedAt = () => ({
    metadata: { annotations: { 'service.cloud.tencent.com/sync-end-time': new Date(clock.nowMs()).toISOString() } },
  });
  await world.create('web', syncedAt());
  await world.advance(1_000);
  host.forget();
  await world.create('other');
  await world.advance(DONE_MS);
  t.deepEqual(
    Object.keys(host.counts()).filter((action) => /LoadBalancer|Listener|Target/.test(action)),
    [],
  );
  t.deepEqual(world.service('other')?.metadata.finalizers ?? [], []);
  t.regex(world.events('LoadBalancersKeptByOther').join(), /Service default\/web has .*--load-balancers=none/);
  const metrics = await world.world.metrics();
  t.regex(metrics, /_problem\{kind="LoadBalancersKeptByOther",name="tke-service-controller"\} 1/);
  t.regex(metrics, /_controller\{controller="service-lb-controller",state="waiting"\} 1/);
  await world.advance(25 * 60 * MINUTE_MS);
  t.is(world.balancers().length, 2, 'its traces are old: it is gone');
  t.notRegex(await world.world.metrics(), /LoadBalancersKeptByOther/);
  await world.patch('other', syncedAt());
  await world.advance(1_000);
  t.is(world.events('LoadBalancersKeptByOther').length, 2, 'a Service that it writes is noticed at once');
  t.regex(await world.world.metrics(), /LoadBalancersKeptByOther/);
  await world.stop();
  t.notRegex(await world.world.metrics(), /LoadBalancersKeptByOther/);
});

test("the ConfigMap of TKE's controller is looked for with the right to read it, unless it is to be ignored", async (t) => {
  const settings = { name: 'tke-service-controller-config', namespace: 'kube-system' };
  for (const [flag, count] of [
    ['detect', 0],
    ['ignore', 1],
  ] as const) {
    const world = await ServiceWorld.start({ flags: [`--tke-service-controller=${flag}`] });
    const { clock, admin } = world.world.scene;
    await clock.run(admin.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: settings }));
    await world.advance(2 * MINUTE_MS);
    await world.join('n1');
    await world.create('web');
    await world.advance(DONE_MS);
    t.is(world.balancers().length, count, flag);
    t.is(world.events('LoadBalancersKeptByOther').length, 1 - count, flag);
    await world.stop();
  }
});
