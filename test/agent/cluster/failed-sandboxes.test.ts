import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { PODS } from '../../../kube/resource-types.ts';
import { sampleLease } from '../pool/supply-sample.ts';
import { type AgentLife, type ClusterScene, eniOf, openClusterScene } from './cluster-scene.ts';

const test = anyTest as TestFn<{ scene: ClusterScene }>;

test.beforeEach(async (t) => {
  t.context.scene = await openClusterScene();
});
test.afterEach.always((t) => t.context.scene.close());

const POD = { namespace: 'default', name: 'web' };

/** An agent with addresses, and a Pod of its node. */
async function start(scene: ClusterScene) {
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', [10, 11, 12])] }));
  const agent = scene.startAgent();
  await scene.pass();
  const { metadata } = await scene.clock.run(
    scene.kube.create(PODS, {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: POD },
      spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
      status: { phase: 'Pending' },
    }),
  );
  await scene.pass();
  return { agent, uid: metadata.uid ?? '' };
}

/** Runs a sandbox of a Pod: ADD, what happens meanwhile, DEL. Returns what the rest of its address is. */
async function runSandbox(
  t: ExecutionContext<{ scene: ClusterScene }>,
  { state }: AgentLife,
  podUid: string,
  meanwhile: () => Promise<void>,
): Promise<{ readonly finding: string; readonly isBrief: () => boolean }> {
  const { clock } = t.context.scene;
  const result = state.pool.lease({ key: 'c/eth0', families: [4], nowMs: clock.bootMs() });
  const [address] = result.kind === 'leased' ? result.addresses : [];
  const ip = address?.ip ?? '';
  t.is(ip, '10.0.1.10');
  await meanwhile();
  const lease = sampleLease('c', 'eni-a', [ip], { podNamespace: POD.namespace, podName: POD.name, podUid });
  const finding = state.podFindings.of(lease);
  state.release(lease, { nowMs: clock.bootMs(), cooldownMs: 120_000, finding });
  if (state.awaitsProof(podUid)) state.podFindings.ask(lease);
  return { finding, isBrief: () => state.pool.state.addresses.get(ip)?.isBrief === true };
}

const setStatus = (scene: ClusterScene, status: object) =>
  scene.clock.run(scene.kube.patch(PODS, POD, { kind: 'merge', body: { status }, subresource: 'status' }));

test('cluster: a Pod without an address proves that its sandbox failed, by an answer where the watch was silent', async (t) => {
  const { scene } = t.context;
  const { agent, uid } = await start(scene);
  const late = await runSandbox(t, agent, uid, () => scene.pass(30_000));
  t.is(late.finding, 'none-yet');
  t.false(late.isBrief());
  await scene.pass();
  t.true(late.isBrief());
  await setStatus(scene, { podIPs: [{ ip: '10.0.1.10' }] });
  await scene.pass();
  t.false(late.isBrief(), 'its status was late');
});

test('cluster: a watch that was heard just now is proof enough', async (t) => {
  const { scene } = t.context;
  const { agent, uid } = await start(scene);
  const late = await runSandbox(t, agent, uid, async () => {
    await scene.pass(28_000);
    await setStatus(scene, { phase: 'Pending', message: 'waits' });
    await scene.pass();
  });
  t.is(late.finding, 'none');
  t.true(late.isBrief());
});

for (const [what, hinder] of Object.entries({
  'whose status had the address and lost it': async (scene) => {
    await setStatus(scene, { podIPs: [{ ip: '10.0.1.10' }] });
    await scene.pass();
    await setStatus(scene, { podIPs: [] });
  },
  'that runs': (scene) => setStatus(scene, { phase: 'Running' }),
  'with another address': (scene) => setStatus(scene, { podIPs: [{ ip: '10.0.1.99' }] }),
  'that ended': (scene) => setStatus(scene, { phase: 'Failed' }),
  'that was deleted': (scene) => scene.clock.run(scene.kube.delete(PODS, POD)),
  'of which the API server says nothing': async (scene) => scene.api.partition('agent'),
} satisfies Record<string, (scene: ClusterScene) => Promise<unknown>>))
  test(`cluster: a Pod ${what} proves nothing`, async (t) => {
    const { scene } = t.context;
    const { agent, uid } = await start(scene);
    const late = await runSandbox(t, agent, uid, async () => {
      await scene.pass(20_000);
      await hinder(scene);
      await scene.pass(10_000);
    });
    await scene.pass(10_000);
    t.false(late.isBrief());
  });

for (const [what, uid] of [
  ['of another uid', 'another'],
  ['whose uid is not known', ''],
] as const)
  test(`cluster: a Pod ${what} proves nothing`, async (t) => {
    const { scene } = t.context;
    const { agent } = await start(scene);
    const early = await runSandbox(t, agent, uid, () => scene.pass(1_000));
    t.is(early.finding, 'unknown');
    await scene.pass(5_000);
    t.false(early.isBrief());
  });

test('cluster: after a long silence of the API server no rest is brief', async (t) => {
  const { scene } = t.context;
  const { agent, uid } = await start(scene);
  scene.api.partition('agent');
  await scene.pass(200_000);
  const early = await runSandbox(t, agent, uid, () => scene.pass(1_000));
  t.deepEqual([early.finding, early.isBrief()], ['unknown', false]);
});
