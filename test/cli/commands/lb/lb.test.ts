/** `tke-eni lb` on load balancers that the controller made, and people changed. */
import test from 'ava';
import { buildLbPlans } from '../../../../cli/commands/lb/build-lb-plan.ts';
import { addPlans, buildLbRows } from '../../../../cli/commands/lb/build-lb-rows.ts';
import type { LbFacts } from '../../../../cli/commands/lb/lb-facts.ts';
import { renderLbPlans, renderLbRows, renderWayOn } from '../../../../cli/commands/lb/run-lb.ts';
import { parseConnection, selectConnection } from '../../../../cli/commands/lb/select-connection.ts';
import { customResourceDefinition } from '../../../../crd/custom-resource-definition.ts';
import { TKE_SERVICE_CONFIG_KIND } from '../../../../crd/tke-service-config.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, TKE_SERVICE_CONFIGS } from '../../../../kube/resource-types.ts';
import { CLUSTER, ServiceWorld } from '../../../cloud-controller-manager/services/service-world.ts';
import { findDifferences } from '../../../frozen/find-differences.ts';
import { readFrozen } from '../../../frozen/frozen.ts';
import { recordLbDocuments } from '../../../frozen/record/lb.ts';
import { PERSON, plansOf, readLb } from './lb-scene.ts';

const DONE_MS = 40_000;
const PLAIN = { width: 200, isColored: false };

async function worldWithWeb() {
  const world = await ServiceWorld.start();
  const [one, two] = [await world.join('n1'), await world.join('n2')];
  await world.create('web', { spec: { ports: [{ port: 80, nodePort: 30_080 }] } });
  await world.advance(DONE_MS);
  return { world, one, two };
}

test('a Service has its load balancer, each target its Node, weight, health and reason', async (t) => {
  const { world, one, two } = await worldWithWeb();
  const { loadBalancerId, vip } = world.balancer();
  const facts = await readLb(world);
  t.is(facts.clusterId, CLUSTER, 'from the tags');
  const [row, ...others] = buildLbRows(facts);
  t.deepEqual(others, []);
  t.like(row, { service: 'default/web', state: 'ready', loadBalancerId, isOwn: true, addresses: [vip], type: 'OPEN' });
  const [listener] = row?.listeners ?? [];
  t.like(listener, { protocol: 'TCP', port: 80, check: 'TCP' });
  t.deepEqual(
    listener?.targets.map(({ ip, port, weight, of, node }) => ({ ip, port, weight, of, node })),
    [
      { ip: one, port: 30_080, weight: 10, of: 'Node n1', node: 'n1' },
      { ip: two, port: 30_080, weight: 10, of: 'Node n2', node: 'n2' },
    ],
  );
  const text = renderLbRows(buildLbRows(facts), PLAIN);
  t.regex(text, new RegExp(`default/web  ready  ${loadBalancerId} OPEN ${vip}`));
  t.regex(text, /10\.0\.\d+\.\d+:30080 +Node n1 +n1 +10 +\w+ +it /);
  t.deepEqual(plansOf(facts), [{ service: 'default/web', steps: [], notices: [] }]);
  t.is(renderLbPlans({ plans: plansOf(facts) }, PLAIN), '0 calls for 1 Services\n');
  await world.stop();
});

test('a named Service, and an address in a status, cost no reads of the other load balancers', async (t) => {
  const { world } = await worldWithWeb();
  const { loadBalancerId: webId, vip } = world.balancer();
  await world.create('other', { spec: { ports: [{ port: 81, nodePort: 30_081 }] } });
  await world.advance(DONE_MS);
  const idsOf = async (what?: string) => {
    const { cloud } = await readLb(world, what);
    return cloud.kind === 'known' ? cloud.value.balancers.map(({ balancer }) => balancer.loadBalancerId) : [];
  };
  t.is((await idsOf()).length, 2);
  t.deepEqual(await idsOf('default/web'), [webId]);
  t.deepEqual(await idsOf(`${vip}:80`), [webId]);
  t.is((await idsOf('203.0.113.9:80')).length, 2, 'in no status: any may have it');
  await world.stop();
});

test('what people did to it is planned, call by call, and each call is what the controller then makes', async (t) => {
  const { world, one, two } = await worldWithWeb();
  const { clock, host } = world.world.scene;
  const { loadBalancerId: id } = world.balancer();
  const { listeners, targets, loadBalancers } = world.cloud;
  const [listener] = await clock.run(listeners.list(id, PERSON));
  const listenerId = listener?.listenerId ?? '';
  const all = await clock.run(targets.list(id, [listenerId], PERSON));
  const ofOne = all.filter(({ ip }) => ip === one);
  const task = await clock.run(listeners.modify(id, listenerId, { scheduler: 'LEAST_CONN' }, PERSON));
  await clock.run(loadBalancers.settle(task, PERSON));
  await clock.run(targets.deregister(id, ofOne, PERSON));
  const ip = world.world.addInstance('ins-stranger');
  const refused = await clock.run(
    targets.register(id, [{ listenerId, ip, instanceId: 'ins-stranger', port: 30_080, weight: 10 }], PERSON),
  );
  t.deepEqual(refused, []);
  const facts = await readLb(world);
  const [plan] = plansOf(facts);
  t.deepEqual(
    plan?.steps.map(({ kind, objects }) => [kind, ...objects]),
    [
      ['setWeights', `TCP/80 ${ip}:30080 weight 0`],
      ['modifyListener', `TCP/80 ${listenerId}`],
      ['register', `TCP/80 ${one}:30080`],
    ],
  );
  t.regex(
    renderLbPlans({ plans: plansOf(facts) }, PLAIN),
    /1\. setWeights: no backends any more.*[\s\S]*2\. modifyListener: scheduler/,
  );
  const [row] = buildLbRows(facts);
  t.regex(row?.problems.join() ?? '', new RegExp(`no Pod and no Node has ${ip}:30080`));
  host.forget();
  await world.advance(600_000);
  const made = host.seen.map(({ action }) => action).filter((action) => /^(Batch|Modify|Create|Delete)/.test(action));
  // The controller asks for health before a target goes, and then takes the weight away last.
  t.deepEqual(made.slice(0, 3).sort(), ['BatchModifyTargetWeight', 'BatchRegisterTargets', 'ModifyListener']);
  t.true(world.listeners()['TCP/80']?.some((text) => text.startsWith(`${two}:`)));
  await world.stop();
});

test('settings of a TkeServiceConfig are what is desired; without it they stay', async (t) => {
  const { world } = await worldWithWeb();
  const { clock, admin } = world.world.scene;
  const named = { metadata: { annotations: { 'service.cloud.tencent.com/tke-service-config': 'slow' } } };
  await world.patch('web', named);
  await world.advance(DONE_MS);
  const [plan] = plansOf(await readLb(world));
  t.deepEqual(plan?.steps, []);
  t.regex(plan?.notices.map(({ message }) => message).join() ?? '', /may not|the cluster has no tkeserviceconfigs/);
  await clock.run(admin.create(CUSTOM_RESOURCE_DEFINITIONS, customResourceDefinition(TKE_SERVICE_CONFIG_KIND)));
  const loadBalancer = { l4Listeners: [{ protocol: 'TCP', port: 80, scheduler: 'LEAST_CONN' }] };
  await clock.run(
    admin.create(TKE_SERVICE_CONFIGS, {
      ...{ apiVersion: 'cloud.tencent.com/v1alpha1', kind: 'TkeServiceConfig' },
      metadata: { namespace: 'default', name: 'slow' },
      spec: { loadBalancer },
    }),
  );
  const [before] = plansOf(await readLb(world));
  t.like(before?.steps, [{ kind: 'modifyListener', reason: 'scheduler differs from what the Service asks for' }]);
  await world.advance(120_000);
  t.deepEqual(plansOf(await readLb(world)), [{ service: 'default/web', steps: [], notices: [] }]);
  await world.stop();
});

test('Services without a load balancer: not served, refused, lost, and to come', async (t) => {
  const { world } = await worldWithWeb();
  await world.create('other', { spec: { loadBalancerClass: 'example.com/other' } });
  await world.create('ranges', { spec: { loadBalancerSourceRanges: ['0.0.0.0/8'] } });
  await world.advance(DONE_MS);
  await world.discard(world.balancer().loadBalancerId);
  const facts = await readLb(world);
  const rows = buildLbRows(facts);
  t.deepEqual(
    rows.map(({ service, state }) => [service, state]),
    [
      ['default/other', 'ignored'],
      ['default/ranges', 'none'],
      ['default/web', 'missing'],
    ],
  );
  t.regex(rows[2]?.problems.join() ?? '', /on record and does not exist/);
  const plans = buildLbPlans(facts, {
    cloud: facts.cloud.kind === 'known' ? facts.cloud.value : { balancers: [] },
    clusterId: CLUSTER,
    vpcId: 'vpc-00000001',
  });
  t.deepEqual(
    plans.map(({ service, steps }) => [service, ...steps.map(({ kind }) => kind)]),
    [['default/ranges'], ['default/web', 'create', 'createListeners', 'register']],
  );
  t.regex(renderLbPlans({ plans }, PLAIN), /nothing is changed: ServiceRefused: spec.loadBalancerSourceRanges/);
  const text = renderLbRows(addPlans(rows, plans), PLAIN);
  t.regex(text, /default\/ranges {2}none[\s\S]*ServiceRefused: spec.loadBalancerSourceRanges/);
  t.regex(text, /3 calls to come: tke-eni lb default\/web --plan/);
  await world.stop();
});

test('source ranges: the group is planned and shown, and a client that is not among them is named with what to do', async (t) => {
  const { world } = await worldWithWeb();
  const ranges = (...loadBalancerSourceRanges: readonly string[]) => ({ loadBalancerSourceRanges });
  const stepsFor = ({ services, ...facts }: LbFacts, spec: object) => {
    const changed = services.map((one) => ({ ...one, spec: { ...Object(one['spec']), ...spec } }));
    return plansOf({ ...facts, services: changed }).flatMap(({ steps }) => steps);
  };
  const kindsFor = (facts: LbFacts, spec: object) => stepsFor(facts, spec).map(({ kind }) => kind);
  t.deepEqual(kindsFor(await readLb(world), ranges('192.0.2.0/24')), ['createSecurityGroup']);
  await world.patch('web', { spec: ranges('192.0.2.0/24') });
  await world.advance(DONE_MS);
  const facts = await readLb(world);
  t.deepEqual(kindsFor(facts, {}), []);
  t.deepEqual(buildLbRows(facts, '192.0.2.7')[0]?.problems, []);
  const [row] = buildLbRows(facts, '198.51.100.7');
  t.regex(
    row?.problems.join() ?? '',
    /sg-\w+ of lb-\w+ does not admit the client 198.51.100.7 to TCP 80; add 198.51.100.7\/32 to the source ranges of the Service$/,
  );
  const reason = 'they are to be ACCEPT TCP:80 from 198.51.100.0/24';
  t.like(stepsFor(facts, ranges('198.51.100.0/24')), [{ kind: 'replacePolicies', reason }]);
  t.deepEqual(kindsFor(facts, ranges()), ['setSecurityGroups', 'deleteSecurityGroup']);
  await world.stop();
});

test('an address is followed to its listener, targets and the node that goes on', async (t) => {
  const { world } = await worldWithWeb();
  const { vip } = world.balancer();
  const rows = buildLbRows(await readLb(world));
  const to = (text: string) => {
    const connection = parseConnection(text);
    return connection === undefined ? undefined : selectConnection(rows, connection);
  };
  t.is(to(`${vip}:80`)?.length, 1);
  t.is(to(vip)?.length, 1);
  t.is(to(`${vip}:81`)?.length, 0);
  t.is(to('10.9.9.9')?.length, 0);
  for (const odd of ['', 'web', '300.1.1.1', `${vip}:0`, `${vip}:70000`, 'a b.c', '1.2.3.4.5'])
    t.is(to(odd), undefined, odd);
  const serving = rows.map((row) => ({
    ...row,
    listeners: row.listeners.map((listener) => ({
      ...listener,
      targets: listener.targets.map((target) => ({ ...target, of: 'Pod default/web-0', getsConnections: true })),
    })),
  }));
  t.regex(
    renderWayOn(serving, 'CLIENT'),
    /has no security group, and the security groups of node or ENI have to admit/,
  );
  t.regex(renderWayOn(serving, 'CLIENT'), /on n1: tke-eni explain default\/web-0 --from CLIENT/);
  await world.stop();
});

test('a Service that is named and not there, and a cloud that does not answer', async (t) => {
  const { world } = await worldWithWeb();
  await t.throwsAsync(readLb(world, 'default/none'), { code: 'NOT_FOUND', message: /no Service default\/none/ });
  t.is((await readLb(world, 'default/web')).services.length, 1);
  const facts = await readLb(world);
  const blind: LbFacts = { ...facts, cloud: { kind: 'unknown', why: 'no key', next: 'set one' } };
  t.like(buildLbRows(blind)[0], { state: 'unknown', addresses: [world.balancer().vip] });
  await world.stop();
});

test('-o json has the recorded paths, and no others', async (t) => {
  t.deepEqual(findDifferences(readFrozen('json/lb'), await recordLbDocuments()), []);
});
