import test, { type ExecutionContext } from 'ava';
import { CONFIG_MAPS, NODE_ENI_CONFIGS, NODES, PODS, VPC_IP_CLAIMS } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { type RunningScheduler, startScheduler } from '../../scheduler/scheduler.ts';
import { installKinds } from '../../sim/kube-api/install-kinds.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { openTestClient } from '../kube/kube-scene.ts';
import { waitUntil } from '../support/wait-until.ts';
import { claimOf, necOf, podOf, schedulerConfig } from './scheduler-scene.ts';

async function open(t: ExecutionContext) {
  const api = await startKubeApi();
  const { client, close } = openTestClient({ url: api.url, token: 'any' });
  await installKinds(client);
  t.teardown(async () => {
    close();
    await api.close();
  });
  const start = async (...flags: readonly string[]): Promise<RunningScheduler> => {
    const runtime = { clock: systemClock, log: silentLogger, random: seededRandom(1), kube: client, release: 'test' };
    const scheduler = await startScheduler(schedulerConfig(...flags), runtime);
    t.teardown(() => scheduler.close());
    await waitUntil(() => scheduler.readiness() === undefined, { what: 'the extender leads' });
    return scheduler;
  };
  return { api, client, start };
}

async function ask(scheduler: RunningScheduler, verb: string, body: unknown) {
  const response = await fetch(`http://${scheduler.address}/${verb}`, { method: 'POST', body: JSON.stringify(body) });
  // The answers of extender/v1; each test reads the fields of its verb.
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

test('filter, bind: give each place once, and say what is missing to the others', async (t) => {
  const { client, start } = await open(t);
  for (const name of ['n1', 'n2']) {
    await client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
    await client.create(NODE_ENI_CONFIGS, necOf({ name, allocatable: 2 }));
  }
  const scheduler = await start();
  await waitUntil(() => scheduler.index.node('n2')?.nec !== undefined, { what: 'both nodes' });
  const bound: string[] = [];
  const refused: string[] = [];
  const pods = Array.from({ length: 12 }, (_, index) => `p${index}`);
  await Promise.all(
    pods.map(async (name, index) => {
      const made = await client.create(PODS, podOf({ name }));
      await ask(scheduler, 'filter', { Pod: made, NodeNames: ['n1', 'n2'] });
      const { uid } = made.metadata;
      const Node = index % 2 === 0 ? 'n1' : 'n2';
      const { body } = await ask(scheduler, 'bind', { PodName: name, PodNamespace: 'default', PodUID: uid, Node });
      if (body['Error'] === '') bound.push(name);
      else refused.push(String(body['Error']));
    }),
  );
  t.is(bound.length, 4, refused.join('\n'));
  t.true(
    refused.every((text) => text.includes('InsufficientIPorENI (need 1, free 0 of 2)')),
    refused.join('\n'),
  );
  const page = await client.listPage(PODS, {});
  const placed = page.items.filter((pod) => (pod['spec'] as { nodeName?: string }).nodeName !== undefined);
  t.is(placed.length, 4);
});

test('filter, bind: bind exactly as many of 60 Pods as there are addresses in the subnet that five nodes share', async (t) => {
  const { client, start } = await open(t);
  const names = ['n1', 'n2', 'n3', 'n4', 'n5'];
  for (const name of names) {
    await client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
    // Each is told that it can have all.
    await client.create(
      NODE_ENI_CONFIGS,
      necOf({ name, allocatable: 20, maxIPPerENI: 30, enis: [{ eniID: `eni-${name}` }] }),
    );
  }
  const supply = { zone: 'ap-guangzhou-3', cidr: '10.1.0.0/27', free: 20, total: 29, held: 5, common: true };
  const metadata = { name: 'tke-eni-subnets', namespace: 'kube-system' };
  const data = { 'subnet-a': JSON.stringify(supply) };
  await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
  const scheduler = await start();
  await waitUntil(() => scheduler.index.node('n5')?.nec !== undefined, { what: 'all nodes' });
  const bound: string[] = [];
  const refused: string[] = [];
  await Promise.all(
    Array.from({ length: 60 }, async (_, index) => {
      const pod = podOf({ name: `p${index}` });
      // There is no kubelet that would end it.
      const spec = { ...(pod['spec'] as object), terminationGracePeriodSeconds: 0 };
      const made = await client.create(PODS, { ...pod, spec });
      await ask(scheduler, 'filter', { Pod: made, NodeNames: names });
      const { name, uid } = made.metadata;
      const Node = names[index % names.length];
      const args = { PodName: name, PodNamespace: 'default', PodUID: uid, Node };
      // As kube-scheduler does: on a busy machine the lease may be lost, or a request take too long, and it asks again.
      const { why } = await waitUntil(
        async () => {
          const error = String((await ask(scheduler, 'bind', args)).body['Error']);
          return (error === '' || error.includes('InsufficientIPorENI')) && { why: error };
        },
        { what: `a place for ${name}, or that there is none`, everyMs: 200 },
      );
      if (why === '') bound.push(name);
      else refused.push(why);
    }),
  );
  t.is(bound.length, 20, [...new Set(refused)].join('\n'));
  t.true(
    refused.every((text) => text.includes('InsufficientIPorENI (subnet-a has 0 of 29 addresses left)')),
    refused.join('\n'),
  );
  // Nobody owes the one that is deleted an address any more.
  const [first = ''] = bound;
  await client.delete(PODS, { name: first, namespace: 'default' });
  const freed = await waitUntil(
    async () => {
      const { body } = await ask(scheduler, 'filter', { Pod: podOf({ name: 'next' }), NodeNames: names });
      return (body['NodeNames'] as string[]).length > 0 ? body['NodeNames'] : undefined;
    },
    { what: 'a place that is free again' },
  );
  t.deepEqual(freed, names);
});

test('filter: waits for the claim of a Pod that keeps its address, and bind reserves it', async (t) => {
  const { client, start } = await open(t);
  await client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } });
  await client.create(NODE_ENI_CONFIGS, necOf({ name: 'n1' }));
  const scheduler = await start('--filter-wait=20s');
  const pod = await client.create(PODS, podOf({ name: 'web-0', isStatic: true }));
  const answer = ask(scheduler, 'filter', { Pod: pod, NodeNames: ['n1'] });
  await client.create(VPC_IP_CLAIMS, claimOf({ name: 'web-0' }));
  t.deepEqual((await answer).body['NodeNames'], ['n1']);
  const args = { PodName: 'web-0', PodNamespace: 'default', PodUID: pod.metadata.uid, Node: 'n1' };
  t.is((await ask(scheduler, 'bind', args)).body['Error'], '');
  const claim = await client.get(VPC_IP_CLAIMS, { namespace: 'default', name: 'web-0' });
  t.like(claim?.['spec'], { nodeName: 'n1' });
  t.truthy(claim?.metadata.annotations?.['tke.cloud.tencent.com/reserved-at']);
});

test('bind: refuses a namesake, and takes the reservation back', async (t) => {
  const { client, start } = await open(t);
  await client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } });
  await client.create(NODE_ENI_CONFIGS, necOf({ name: 'n1', allocatable: 1 }));
  await client.create(VPC_IP_CLAIMS, claimOf({ name: 'web-0' }));
  const scheduler = await start();
  await client.create(PODS, podOf({ name: 'web-0', isStatic: true }));
  const dead = podOf({ name: 'web-0', uid: 'of-an-earlier-one', isStatic: true });
  await waitUntil(() => scheduler.index.claim('default/web-0') !== undefined, { what: 'the claim' });
  await ask(scheduler, 'filter', { Pod: dead, NodeNames: ['n1'] });
  const args = { PodName: 'web-0', PodNamespace: 'default', PodUID: 'of-an-earlier-one', Node: 'n1' };
  const { body } = await ask(scheduler, 'bind', args);
  t.regex(String(body['Error']), /not bound to n1/);
  const claim = await client.get(VPC_IP_CLAIMS, { namespace: 'default', name: 'web-0' });
  t.deepEqual(claim?.['spec'], { mode: 'route-eni', deletePolicy: 'Never' });
  t.is(scheduler.index.reservationOf('of-an-earlier-one'), undefined);
});

test('filter: answers others while a Pod waits for its claim, and says in the end what it waited for', async (t) => {
  const { client, start } = await open(t);
  await client.create(NODE_ENI_CONFIGS, necOf({ name: 'n1' }));
  const scheduler = await start('--filter-wait=1s');
  await waitUntil(() => scheduler.index.node('n1')?.nec !== undefined, { what: 'the node' });
  let hasWaited = false;
  const waits = ask(scheduler, 'filter', { Pod: podOf({ name: 'web-0', isStatic: true }), NodeNames: ['n1'] });
  const waited = waits.then((answer) => {
    hasWaited = true;
    return answer;
  });
  const other = await ask(scheduler, 'filter', { Pod: podOf({ name: 'a' }), NodeNames: ['n1'] });
  t.false(hasWaited);
  t.deepEqual(other.body['NodeNames'], ['n1']);
  t.regex(String((await waited).body['Error']), /VpcIPClaim default\/web-0 is not there yet/);
});

test('filter: returns whole Nodes to who sends them, and all nodes for a Pod that asks for nothing of ours', async (t) => {
  const { client, start } = await open(t);
  await client.create(NODE_ENI_CONFIGS, necOf({ name: 'n1' }));
  await client.create(NODE_ENI_CONFIGS, necOf({ name: 'n2', allocatable: 0 }));
  const scheduler = await start();
  await waitUntil(() => scheduler.index.node('n2')?.nec !== undefined, { what: 'both nodes' });
  const items = ['n1', 'n2'].map((name) => ({ metadata: { name, labels: { of: name } }, spec: {} }));
  const ours = await ask(scheduler, 'filter', { Pod: podOf({ name: 'a' }), Nodes: { items }, NodeNames: null });
  t.deepEqual(ours.body['Nodes'], { items: items.slice(0, 1) });
  t.deepEqual(ours.body['FailedNodes'], { n2: 'InsufficientIPorENI (need 1, free 0 of 0)' });
  const foreign = podOf({ name: 'b', resources: { cpu: '1' } });
  t.deepEqual((await ask(scheduler, 'filter', { Pod: foreign, NodeNames: ['n2', 'n9'] })).body['NodeNames'], [
    'n2',
    'n9',
  ]);
});

test('startScheduler: one of two replicas leads; the other takes over with the reservations that are in claims', async (t) => {
  const { client, start } = await open(t);
  await client.create(NODE_ENI_CONFIGS, necOf({ name: 'n1', allocatable: 1 }));
  const reservedAt = new Date().toISOString();
  await client.create(VPC_IP_CLAIMS, claimOf({ name: 'web-0', spec: { nodeName: 'n1' }, reservedAt }));
  const lease = ['--leader-elect-lease=4s', '--leader-elect-renew=1s', '--leader-elect-retry=100ms'];
  const first = await start(...lease);
  const runtime = { clock: systemClock, log: silentLogger, random: seededRandom(1), kube: client, release: 'test' };
  const second = await startScheduler(schedulerConfig(...lease), runtime);
  t.teardown(() => second.close());
  await waitUntil(() => second.readiness() === 'another replica leads; this one stands by', { what: 'a standby' });
  const question = { Pod: podOf({ name: 'a' }), NodeNames: ['n1'] };
  const refused = await ask(second, 'filter', question);
  t.is(refused.status, 503);
  await first.close();
  t.truthy(first.readiness());
  await waitUntil(() => second.readiness() === undefined, { what: 'the other leads', timeoutMs: 60_000 });
  const { body } = await ask(second, 'filter', question);
  t.deepEqual(body['FailedNodes'], { n1: 'InsufficientIPorENI (need 1, free 0 of 1)' });
  const web = await ask(second, 'filter', { Pod: podOf({ name: 'web-0', isStatic: true }), NodeNames: ['n1'] });
  t.deepEqual(web.body['NodeNames'], ['n1']);
});

test('bind: holds a place when the API server does not say whether its Pod is bound', async (t) => {
  const { api, client, start } = await open(t);
  await client.create(NODE_ENI_CONFIGS, necOf({ name: 'n1', allocatable: 1 }));
  const scheduler = await start();
  const made = await client.create(PODS, podOf({ name: 'a' }));
  const other = await client.create(PODS, podOf({ name: 'b' }));
  const isSeen = () => scheduler.index.pod(String(other.metadata.uid)) !== undefined;
  await waitUntil(() => isSeen() && scheduler.index.node('n1')?.nec !== undefined, { what: 'both Pods' });
  const argsOf = (pod: typeof made) => ({
    ...{ PodName: pod.metadata.name, PodNamespace: 'default', PodUID: pod.metadata.uid, Node: 'n1' },
  });
  api.faults.add({ verbs: ['create'], name: 'a', action: { kind: 'drop-after' }, times: 1 });
  const unclear = await ask(scheduler, 'bind', argsOf(made));
  t.regex(String(unclear.body['Error']), /whether it is bound is not known, its place is held/);
  t.regex(String((await ask(scheduler, 'bind', argsOf(other))).body['Error']), /InsufficientIPorENI/);
  await waitUntil(() => scheduler.index.pod(String(made.metadata.uid))?.nodeName === 'n1', { what: 'it was bound' });
  t.is((await ask(scheduler, 'bind', argsOf(made))).body['Error'], '');
});
