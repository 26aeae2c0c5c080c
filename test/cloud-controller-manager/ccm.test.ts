import test from 'ava';
import { decodeCcmNode } from '../../cloud-controller-manager/controller/ccm-node.ts';
import { NODES } from '../../kube/resource-types.ts';
import { ccmScene, type Run } from './ccm-scene.ts';

const NODE = 'cloud-node-controller';
const LIFECYCLE = 'cloud-node-lifecycle-controller';

function running(runs: readonly Run[]): readonly string[] {
  return runs.filter(({ toMs }) => toMs === Number.POSITIVE_INFINITY).map((run) => `${run.replica} ${run.controller}`);
}

/** The pairs of runs of one controller by two replicas at a time. */
function overlaps(runs: readonly Run[]): readonly (readonly Run[])[] {
  return runs.flatMap((one, index) =>
    runs
      .slice(index + 1)
      .filter((two) => one.controller === two.controller && one.fromMs < two.toMs && two.fromMs < one.toMs)
      .map((two) => [one, two]),
  );
}

/** Each kind of lock, with the right that the published role lacks for it. */
const LOCKS = {
  endpoints: { plural: 'endpoints', group: '', kind: 'Endpoints' },
  configmaps: { plural: 'configmaps', group: '', kind: 'ConfigMap' },
  leases: { plural: 'leases', group: 'coordination.k8s.io', kind: 'Lease' },
} as const;

for (const [lock, { plural, group, kind }] of Object.entries(LOCKS)) {
  test(`startCcm: one of two replicas works, and the other when the first is cut off, by ${lock}`, async (t) => {
    const scene = await ccmScene();
    const { clock, runs, server } = scene;
    await scene.setRules((rules) => [
      ...rules,
      { apiGroups: [group], resources: [plural], verbs: ['get', 'create', 'update'] },
    ]);
    const flags = [`--leader-elect-resource-lock=${lock}`];
    const [one, two] = [await scene.start('one', flags), await scene.start('two', flags)];
    await clock.advance(30_000);
    const [first = ''] = running(runs).map((run) => run.split(' ')[0]);
    t.deepEqual(running(runs), [`${first} ${NODE}`, `${first} ${LIFECYCLE}`]);
    t.deepEqual(
      server.objects(plural, group).map(({ metadata }) => metadata.name),
      ['cloud-controller-manager'],
    );
    const { heal } = server.partition(first);
    await clock.advance(60_000);
    const second = first === 'one' ? 'two' : 'one';
    t.deepEqual(running(runs), [`${second} ${NODE}`, `${second} ${LIFECYCLE}`]);
    heal();
    await clock.advance(60_000);
    t.deepEqual(overlaps(runs), []);
    const told = scene.events('LeaderElection').map((message) => message.replace(/_[0-9a-f]{8} /, ' '));
    t.true(told.includes(`${first} became leader`) && told.includes(`${second} became leader`), told.join('; '));
    t.deepEqual(
      new Set(server.objects('events').map((event) => JSON.stringify(event['involvedObject']).includes(`"${kind}"`))),
      new Set([true]),
    );
    await clock.run(Promise.all([one.close(), two.close()]));
    t.deepEqual(running(runs), []);
  });
}

test('startCcm: hands over at once when the leader ends', async (t) => {
  const { clock, runs, start } = await ccmScene();
  const [one, two] = [await start('one'), await start('two')];
  await clock.advance(10_000);
  const leader = one.isLeading ? one : two;
  await clock.run(leader.close());
  await clock.advance(5_000);
  t.deepEqual([one.isLeading, two.isLeading], [leader === two, leader === one]);
  t.is(running(runs).length, 2);
  t.deepEqual(overlaps(runs), []);
  await clock.run(Promise.all([one.close(), two.close()]));
});

test('startCcm: runs the controllers that --controllers names, and says so', async (t) => {
  const { clock, runs, start } = await ccmScene();
  const ccm = await start('one', [`--controllers=*,-${LIFECYCLE}`]);
  await clock.advance(10_000);
  t.deepEqual(running(runs), [`one ${NODE}`]);
  t.deepEqual([ccm.stateOf(NODE), ccm.stateOf(LIFECYCLE)], ['running', 'off']);
  t.regex(
    await ccm.metrics.registry.metrics(),
    /_controller\{controller="cloud-node-lifecycle-controller",state="off"\} 1/,
  );
  await clock.run(ccm.close());
});

test('startCcm: leaves off a controller without its rights, visibly, and begins it when they are granted', async (t) => {
  const scene = await ccmScene();
  const { clock, runs } = scene;
  await scene.setRules((rules) =>
    rules.map((rule) =>
      rule.resources.includes('nodes') ? { ...rule, verbs: ['get', 'list', 'watch', 'patch', 'update'] } : rule,
    ),
  );
  const ccm = await scene.start('one');
  await clock.advance(10_000);
  t.deepEqual(running(runs), [`one ${NODE}`]);
  t.deepEqual([ccm.stateOf(NODE), ccm.stateOf(LIFECYCLE)], ['running', 'noRights']);
  const metrics = await ccm.metrics.registry.metrics();
  t.regex(metrics, /_controller\{controller="cloud-node-lifecycle-controller",state="noRights"\} 1/);
  t.regex(metrics, /_problem\{kind="Forbidden",name="cloud-node-lifecycle-controller: delete nodes"\} 1/);
  t.regex(
    scene.events('Forbidden').join('; '),
    /^cloud-node-lifecycle-controller does not run: .* may not delete nodes; grant/,
  );
  await scene.setRules((rules) => rules);
  await clock.advance(40_000);
  t.deepEqual(running(runs), [`one ${NODE}`, `one ${LIFECYCLE}`]);
  t.notRegex(await ccm.metrics.registry.metrics(), /_problem\{/);
  await clock.run(ccm.close());
});

test('startCcm: is not ready, and no controller runs, until the Nodes were read', async (t) => {
  const { clock, runs, server, start } = await ccmScene();
  const heal = server.api.faults.add({ resources: ['nodes'], verbs: ['list'], action: { kind: 'drop-before' } });
  const ccm = await start('one');
  await clock.advance(20_000);
  t.is(ccm.readiness(), 'not read yet: nodes');
  t.deepEqual([running(runs).length, ccm.isLeading], [0, true]);
  heal();
  await clock.advance(60_000);
  t.is(ccm.readiness(), undefined);
  t.is(running(runs).length, 2);
  await clock.run(ccm.close());
});

test('startCcm: ends with what a controller throws, and releases the lock', async (t) => {
  const { clock, start, server } = await ccmScene();
  const fault = new Error('broken');
  const run = async (): Promise<void> => {
    throw fault;
  };
  const ccm = await start('one', [], [{ name: NODE, rights: [], run }]);
  await clock.advance(10_000);
  t.is(await t.throwsAsync(ccm.ended), fault);
  t.regex(JSON.stringify(server.objects('endpoints')), /holderIdentity\\":\\"\\"/);
});

test('startCcm: works without a lock under --leader-elect=false', async (t) => {
  const { clock, runs, start, server } = await ccmScene();
  const ccm = await start('one', ['--leader-elect=false']);
  await clock.advance(2_000);
  t.is(running(runs).length, 2);
  t.deepEqual(server.objects('endpoints'), []);
  await clock.run(ccm.close());
});

test('decodeCcmNode: caches nothing of a Node that no controller reads', async (t) => {
  const { clock, admin, start } = await ccmScene();
  const nodeInfo = { kernelVersion: '6.1' };
  const status = { images: [{ names: ['a'] }], volumesInUse: ['v'], nodeInfo, phase: 'Running' };
  await clock.run(admin.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }));
  await clock.run(admin.patch(NODES, { name: 'n1' }, { kind: 'merge', subresource: 'status', body: { status } }));
  const cached: unknown[] = [];
  const run = async ({ nodes }: { nodes: { values(): Iterable<object> } }, signal: AbortSignal): Promise<void> => {
    cached.push(...nodes.values());
    if (!signal.aborted) await new Promise((end) => signal.addEventListener('abort', end, { once: true }));
  };
  const ccm = await start('one', [], [{ name: NODE, rights: [], run }]);
  await clock.advance(10_000);
  t.deepEqual(
    cached.map((node) => (node as { status: object }).status),
    [{ phase: 'Running' }],
  );
  await clock.run(ccm.close());
});

test('decodeCcmNode: caches no managed fields, which are half of a Node', (t) => {
  const managedFields = [{ manager: 'kubelet', operation: 'Update', fieldsV1: { 'f:status': {} } }];
  const metadata = { name: 'n1', labels: { zone: 'a' }, managedFields };
  const { metadata: kept } = decodeCcmNode({ apiVersion: 'v1', kind: 'Node', metadata });
  t.deepEqual<unknown, unknown>(kept, { name: 'n1', labels: { zone: 'a' } });
});
