import test, { type ExecutionContext } from 'ava';
import { GATHER_DEMAND_MS } from '../../../agent/supply/may-gather.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { type ClusterScene, endLease, eniOf, leaseTo, openClusterScene } from './cluster-scene.ts';

type Condition = Readonly<Record<string, string>>;

async function createNode(scene: ClusterScene): Promise<void> {
  await scene.clock.run(scene.kube.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }));
}

function nodeOf(scene: ClusterScene) {
  const [node] = scene.api.objects('nodes') as readonly {
    readonly metadata: { readonly resourceVersion?: string };
    readonly status?: { readonly conditions?: readonly Condition[] };
  }[];
  return { version: node?.metadata.resourceVersion, condition: node?.status?.conditions?.[0] };
}

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

test('an agent goes on to say that its demand is refused when it is not urgent any more', async (t) => {
  const scene = await openClusterScene();
  t.teardown(() => scene.close());
  await scene.supply(() => ({ eniInfos: [eniOf('a', [11, 12, 13, 14, 15, 16])] }));
  const agent = scene.startAgent();
  await scene.pass(30_000);
  const permit = refuse(scene, 'update', 'nodeeniconfigs');
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  for (const name of names) leaseTo(agent, name, scene.clock.bootMs());
  await scene.pass(5_000);
  t.regex(agent.state.supplyWaitsFor() ?? 'nothing', /update nodeeniconfigs/, 'no address is left');
  for (const name of names.slice(1)) endLease(agent, name, scene.clock.bootMs());
  for (let seconds = 0; seconds < 40; seconds += 1) {
    await scene.pass(1_000);
    t.regex(agent.state.supplyWaitsFor() ?? 'nothing', /update nodeeniconfigs/, `after ${seconds} s`);
  }
  permit();
  await scene.pass(30_000);
  t.is(agent.state.supplyWaitsFor(), undefined);
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
  await createNode(scene);
  const healthy = scene.startAgent();
  await scene.pass(90_000);
  t.is(nodeOf(scene).condition, undefined);
  healthy.kill();
  const permit = refuse(scene, 'update', 'nodeeniconfigs');
  const agent = scene.startAgent();
  leaseTo(agent, 'a', scene.clock.bootMs());
  await scene.pass(90_000);
  const shown = nodeOf(scene).condition;
  t.like(shown, { type: 'ENIAgentRefused', status: 'True', reason: 'UpdateNodeeniconfigs' });
  t.regex(shown?.['message'] ?? '', /^the API server refuses to update nodeeniconfigs \(403 FORBIDDEN\): /);
  permit();
  await scene.pass(90_000);
  t.like(nodeOf(scene).condition, { status: 'False', reason: 'Answered' });
});

test('a Node that its agent cannot read gets the condition once, also from an agent that never read it', async (t) => {
  const scene = await openServing(t);
  await createNode(scene);
  const first = scene.startAgent();
  leaseTo(first, 'a', scene.clock.bootMs());
  await scene.pass(90_000);
  refuse(scene, 'list', 'nodes');
  refuse(scene, 'watch', 'nodes');
  scene.api.cutWatches('agent');
  await scene.pass(90_000);
  const { condition, version } = nodeOf(scene);
  t.like(condition, { status: 'True' });
  await scene.pass(300_000);
  t.deepEqual(nodeOf(scene), { condition, version }, 'the same is not written again');
  first.kill();
  const permit = refuse(scene, 'update', 'nodeeniconfigs');
  const second = scene.startAgent();
  leaseTo(second, 'b', scene.clock.bootMs());
  await scene.pass(90_000);
  const later = nodeOf(scene);
  t.like(later.condition, { status: 'True', lastTransitionTime: condition?.['lastTransitionTime'] ?? '' });
  await scene.pass(300_000);
  t.deepEqual(nodeOf(scene), later);
  permit();
});

test('a Node that its agent cannot read loses the condition of an agent before, once it is over', async (t) => {
  const scene = await openServing(t);
  await createNode(scene);
  refuse(scene, 'list', 'nodes');
  const permit = refuse(scene, 'update', 'nodeeniconfigs');
  const flags = ['--pod-cidr=10.9.0.0/24'];
  const first = scene.startAgent(flags);
  leaseTo(first, 'a', scene.clock.bootMs());
  await scene.pass(90_000);
  t.like(nodeOf(scene).condition, { status: 'True', reason: 'UpdateNodeeniconfigs' });
  first.kill();
  permit();
  scene.startAgent(flags);
  await scene.pass(90_000);
  t.like(nodeOf(scene).condition, { status: 'False', reason: 'Answered' });
});

test('the condition stays with the call that it names, whatever else is refused for a while', async (t) => {
  const scene = await openServing(t);
  await createNode(scene);
  const agent = scene.startAgent();
  refuse(scene, 'update', 'nodeeniconfigs');
  leaseTo(agent, 'a', scene.clock.bootMs());
  await scene.pass(90_000);
  const before = nodeOf(scene);
  t.like(before.condition, { reason: 'UpdateNodeeniconfigs' });
  const permit = refuse(scene, 'list', 'pods');
  scene.api.cutWatches('agent');
  await scene.pass(90_000);
  t.true(agent.cluster.apiFailures().some(({ call }) => call === 'list pods'));
  permit();
  await scene.pass(90_000);
  t.deepEqual(nodeOf(scene), before);
});

test('the condition says of calls that fail that they fail', async (t) => {
  const scene = await openServing(t);
  await createNode(scene);
  refuse(scene, 'update', 'nodeeniconfigs', 500, 'InternalError');
  leaseTo(scene.startAgent(), 'a', scene.clock.bootMs());
  await scene.pass(120_000);
  t.like(nodeOf(scene).condition, { status: 'True', reason: 'UpdateNodeeniconfigsFails' });
  t.regex(nodeOf(scene).condition?.['message'] ?? '', /^calls to update nodeeniconfigs fail \(500 UNAVAILABLE\): /);
});

test('a write that is not due any more keeps no agent from being ready', async (t) => {
  const scene = await openServing(t);
  const agent = scene.startAgent();
  await scene.pass(GATHER_DEMAND_MS + 5_000);
  refuse(scene, 'update', 'nodeeniconfigs');
  leaseTo(agent, 'a', scene.clock.bootMs());
  await scene.pass(GATHER_DEMAND_MS + 5_000);
  t.regex(agent.cluster.whyUnready() ?? 'ready', /update nodeeniconfigs \(403/);
  endLease(agent, 'a', scene.clock.bootMs());
  await scene.pass(30_000);
  t.is(agent.cluster.whyUnready(), undefined);
  t.deepEqual(agent.cluster.apiFailures(), []);
});

test('a missing object is not explained by the refusal of something that no Pod needs', async (t) => {
  const scene = await openClusterScene({ hasNec: false });
  t.teardown(() => scene.close());
  refuse(scene, 'patch', 'nodes/status');
  await createNode(scene);
  const agent = scene.startAgent();
  await scene.pass(5_000);
  agent.refused('create events');
  t.is(agent.state.supplyWaitsFor(), 'there is no NodeENIConfig n1 yet; tke-eni-ipamd makes it');
  const permit = refuse(scene, 'list', 'nodeeniconfigs');
  scene.api.cutWatches('agent');
  await scene.pass(5_000);
  t.regex(agent.state.supplyWaitsFor() ?? 'nothing', /list nodeeniconfigs \(403/);
  permit();
});

for (const [code, reason, says] of [
  [404, 'NotFound', /list nodeeniconfigs .*404 NOT_FOUND.*the definition of nodeeniconfigs is missing/],
  [429, 'TooManyRequests', /list nodeeniconfigs .*429 THROTTLED/],
  [500, 'InternalError', /list nodeeniconfigs .*500 UNAVAILABLE/],
] as const)
  test(`readyz: a server that answers the list with ${code} did answer`, async (t) => {
    const scene = await openServing(t);
    refuse(scene, 'list', 'nodeeniconfigs', code, reason);
    const agent = scene.startAgent();
    for (const ms of [5_000, 60_000]) {
      await scene.pass(ms);
      t.regex(agent.cluster.whyUnready() ?? 'ready', says);
      t.notRegex(agent.cluster.whyUnready() ?? '', /not answer/);
    }
  });

test('readyz: the Node is needed where blocks of it are used', async (t) => {
  const scene = await openServing(t);
  refuse(scene, 'list', 'nodes');
  const isReady = async (t: ExecutionContext, flags: readonly string[]) => {
    const agent = scene.startAgent(flags);
    await scene.pass(5_000);
    t.true(agent.cluster.apiFailures().some(({ call }) => call === 'list nodes'));
    const why = agent.cluster.whyUnready();
    agent.kill();
    return why === undefined;
  };
  t.false(await isReady(t, []));
  t.true(await isReady(t, ['--pod-cidr=10.9.0.0/24']));
});

test('a missing right is said once in an event, with the words of everywhere else, and counts until it is granted', async (t) => {
  const scene = await openServing(t);
  const permit = refuse(scene, 'list', 'pods');
  const agent = scene.startAgent();
  await scene.pass(60_000);
  const said = agent.told.filter((one) => one.startsWith('Forbidden'));
  t.is(said.length, 1);
  t.regex(said[0] ?? '', /^Forbidden: the API server refuses to list pods \(403 FORBIDDEN\): /);
  t.is(await agent.missingRight('list pods'), 1);
  permit();
  await scene.pass(60_000);
  t.is(await agent.missingRight('list pods'), undefined);
});
