import test from 'ava';
import { NODES } from '../../../kube/resource-types.ts';
import { type ClusterScene, eniOf, leaseTo, openClusterScene } from './cluster-scene.ts';

/** Refuses a call to the agent until the returned function is called. */
function refuse(scene: ClusterScene, verb: string, resource: string, code = 403, reason = 'Forbidden'): () => void {
  const action = { kind: 'status', code, reason } as const;
  return scene.api.api.faults.add({ verbs: [verb], resources: [resource], userAgent: 'agent', action });
}

async function openServing(t: { teardown(run: () => void): void }): Promise<ClusterScene> {
  const scene = await openClusterScene();
  t.teardown(() => scene.close());
  await scene.supply(() => ({ eniInfos: [eniOf('a', [11, 12])] }));
  return scene;
}

for (const [code, reason] of [
  [403, 'Forbidden'],
  [401, 'Unauthorized'],
  [422, 'Invalid'],
  [500, 'InternalError'],
] as const)
  test(`an agent that may not write its demand (${code}) says so until it may`, async (t) => {
    const scene = await openServing(t);
    const agent = scene.startAgent();
    await scene.pass(5_000);
    const asked = agent.cluster.asked?.();
    t.is(asked, 5);
    const permit = refuse(scene, 'update', 'nodeeniconfigs', code, reason);
    for (const name of ['a', 'b']) leaseTo(agent, name, scene.clock.bootMs());
    await scene.pass(60_000);
    t.is(agent.state.pool.demand(agent.cluster.warm(), agent.cluster.outside()).desired, 7);
    t.is(agent.cluster.asked?.(), asked, 'only what the object has is asked for');
    const what = code === 401 ? /accept the token \(401/ : new RegExp(`update nodeeniconfigs (?:fail )?\\(${code}`);
    t.regex(agent.state.supplyWaitsFor() ?? 'nothing', what);
    t.regex(agent.cluster.apiFailures()[0]?.call ?? '', /^(token|update nodeeniconfigs)$/);
    if (code < 500) t.regex(agent.cluster.whyUnready() ?? 'ready', what);
    permit();
    await scene.pass(30_000);
    t.is(agent.cluster.asked?.(), 7);
    t.is(agent.state.supplyWaitsFor(), undefined);
    t.deepEqual(agent.cluster.apiFailures(), []);
    t.is(agent.cluster.whyUnready(), undefined);
  });

test('an agent that may not read Pods says so, and goes on with its supply', async (t) => {
  const scene = await openServing(t);
  const permit = refuse(scene, 'list', 'pods');
  const agent = scene.startAgent();
  await scene.pass(5_000);
  t.regex(agent.state.supplyWaitsFor() ?? 'nothing', /list pods \(403/);
  t.is(agent.cluster.asked?.(), 5);
  permit();
  await scene.pass(60_000);
  t.is(agent.state.supplyWaitsFor(), undefined);
});

test('readyz: not before the first answer of the API server, and on while it is away', async (t) => {
  const scene = await openServing(t);
  const { heal } = scene.api.partition('agent');
  const agent = scene.startAgent();
  await scene.pass(5_000);
  t.regex(agent.cluster.whyUnready() ?? 'ready', /did not answer since this agent started: .*UNAVAILABLE/);
  heal();
  await scene.pass(60_000);
  t.is(agent.cluster.whyUnready(), undefined);
  scene.api.partition('agent');
  await scene.pass(120_000);
  t.is(agent.cluster.whyUnready(), undefined);
  t.regex(agent.state.supplyWaitsFor() ?? 'nothing', /^the API server does not answer \(/);
});

test('a Node says what its agent is refused, and that it is over; one that was never refused anything has no word of it', async (t) => {
  const scene = await openServing(t);
  await scene.clock.run(scene.kube.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }));
  const conditions = () => {
    const [node] = scene.api.objects('nodes') as readonly { readonly status?: { readonly conditions?: unknown } }[];
    return node?.status?.conditions;
  };
  const healthy = scene.startAgent();
  await scene.pass(90_000);
  t.is(conditions(), undefined);
  healthy.kill();
  const permit = refuse(scene, 'update', 'nodeeniconfigs');
  const agent = scene.startAgent();
  leaseTo(agent, 'a', scene.clock.bootMs());
  await scene.pass(90_000);
  const [shown] = conditions() as readonly Record<string, string>[];
  t.like(shown, { type: 'ENIAgentRefused', status: 'True', reason: 'UpdateNodeeniconfigs' });
  t.regex(shown?.['message'] ?? '', /^the API server refuses to update nodeeniconfigs \(403 FORBIDDEN\): /);
  permit();
  await scene.pass(90_000);
  t.like((conditions() as readonly Record<string, string>[])[0], { status: 'False', reason: 'Answered' });
});
