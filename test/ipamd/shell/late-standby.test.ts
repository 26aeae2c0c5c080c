import test from 'ava';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { updateGuarded } from '../../../kube/guarded-update.ts';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { runAgent } from '../support/lead-nodes.ts';
import { type ShellScene, shellScene } from './shell-scene.ts';

// A new leader whose picture of the objects is old takes what the former leader wrote for what it is.

function statusOf(scene: ShellScene): NodeEniConfigStatus {
  // Checked against its schema by the server.
  return (scene.nec('n1')?.['status'] ?? {}) as NodeEniConfigStatus;
}

function assignedIps({ eniInfos = [] }: NodeEniConfigStatus): readonly string[] {
  return eniInfos
    .flatMap(({ addresses = [] }) => addresses)
    .filter(({ state }) => state === 'Assigned')
    .map(({ ip }) => ip)
    .sort();
}

/** Addresses that are offered to Pods and are on no ENI of the cloud. */
function blackHoles(scene: ShellScene): readonly string[] {
  const enis = [...scene.host.model.state.enis.values()];
  const real = new Set(enis.flatMap(({ ips }) => [...ips.keys()]));
  return assignedIps(statusOf(scene)).filter((ip) => !real.has(ip));
}

function mended(scene: ShellScene): readonly unknown[] {
  const events = scene.server.objects('events').filter(({ reason }) => reason === 'ObjectMended');
  return events.map(({ message }) => message);
}

/** A node with an agent that wants so many addresses, and offers the rest. */
async function busyNode(scene: ShellScene, order: { count: number }): Promise<void> {
  await scene.join('n1');
  void runAgent(scene.clock, scene.server.client({ userAgent: 'agent' }), 'n1', ({ eniInfos = [] }) => {
    const all = eniInfos.flatMap(({ addresses = [] }) => addresses).filter(({ state }) => state === 'Assigned');
    const releasableIPs = all.slice(order.count).map(({ ip, assignmentID }) => ({ ip, assignmentID }));
    return { desiredRouteENIIP: order.count, releasableIPs };
  });
  await settle(scene, order);
}

async function settle(scene: ShellScene, { count }: { readonly count: number }): Promise<void> {
  await scene.until(() => assignedIps(statusOf(scene)).length === count && statusOf(scene).intents?.length === 0);
}

test('a standby whose watch is minutes behind leads, and undoes nothing that the former leader wrote', async (t) => {
  const scene = await shellScene();
  const first = await scene.start({ name: 'first' });
  await scene.until(() => first.isLeading);
  const order = { count: 12 };
  await busyNode(scene, order);
  // From its first event on: the list is what the standby knows.
  const action = { kind: 'watch-delay', ms: 180_000 } as const;
  scene.server.api.faults.add({ userAgent: 'second', verbs: ['watch'], resources: ['nodeeniconfigs'], action });
  const second = await scene.start({ name: 'second' });
  await scene.until(() => second.readiness() === undefined);
  await scene.clock.advance(5_000);
  order.count = 4;
  await settle(scene, order);
  await scene.clock.run(first.close());
  await scene.until(() => second.isLeading);
  const kept = assignedIps(statusOf(scene));
  for (let waited = 0; waited < 300_000; waited += 5_000) {
    await scene.clock.advance(5_000);
    t.deepEqual(blackHoles(scene), []);
    t.deepEqual(assignedIps(statusOf(scene)), kept);
  }
  t.deepEqual(mended(scene), []);
  order.count = 8;
  await settle(scene, order);
  t.deepEqual(blackHoles(scene), []);
  await scene.clock.run(second.close());
});

/** A node at rest, whose leader has just ended; the watch of the next one is behind by so much. */
async function restedScene(behindMs: number, order = { count: 12 }): Promise<ShellScene> {
  const scene = await shellScene();
  const first = await scene.start({ name: 'first' });
  await scene.until(() => first.isLeading);
  await busyNode(scene, order);
  await scene.clock.advance(10_000);
  await scene.clock.run(first.close());
  const action = { kind: 'watch-delay', ms: behindMs } as const;
  if (behindMs > 0)
    scene.server.api.faults.add({ userAgent: 'second', verbs: ['watch'], resources: ['nodeeniconfigs'], action });
  return scene;
}

/** Writes the status as a former leader does, or anybody else. */
function write(scene: ShellScene, change: (status: NodeEniConfigStatus) => NodeEniConfigStatus): Promise<unknown> {
  return scene.clock.run(
    updateGuarded(scene.kube, NODE_ENI_CONFIGS, { name: 'n1' }, (object) => ({
      ...object,
      status: change(statusOf(scene)),
    })),
  );
}

for (const behindMs of [0, 180_000]) {
  test(`the last write of a former leader, after the first look of one that is ${behindMs} ms behind, is not undone`, async (t) => {
    const scene = await restedScene(behindMs);
    const second = await scene.start({ name: 'second' });
    await scene.until(() => second.isLeading);
    await scene.clock.advance(2_000);
    const described = (describedAt: string) => write(scene, (status) => ({ ...status, describedAt }));
    await described('2026-01-02T03:04:05Z');
    await scene.clock.advance(300_000);
    t.is(statusOf(scene).describedAt, '2026-01-02T03:04:05Z');
    t.deepEqual(mended(scene), []);
    // By now it is the edit of somebody else.
    await described('2026-02-02T02:02:02Z');
    await scene.clock.advance(behindMs + 10_000);
    t.is(statusOf(scene).describedAt, '2026-01-02T03:04:05Z');
    t.is(mended(scene).length, 1);
    await scene.clock.run(second.close());
  });
}

test('what another client changes in the first minute of a term is found in the cloud', async (t) => {
  const order = { count: 12 };
  const scene = await restedScene(0, order);
  const second = await scene.start({ name: 'second' });
  await scene.until(() => second.isLeading);
  await scene.clock.advance(10_000);
  const [dropped = ''] = assignedIps(statusOf(scene));
  // Nothing is bought instead, and the counts are right: nothing contradicts it.
  order.count -= 1;
  await write(scene, ({ eniInfos = [], routeENIIPs = 0, ...status }) => ({
    ...status,
    eniInfos: eniInfos.map((eni) => ({ ...eni, addresses: (eni.addresses ?? []).filter(({ ip }) => ip !== dropped) })),
    routeENIIPs: routeENIIPs - 1,
  }));
  t.true(await scene.clock.until(() => assignedIps(statusOf(scene)).includes(dropped), 90_000));
  await scene.clock.run(second.close());
});

test('close: a leader that cannot read the objects past the watch ends at once', async (t) => {
  const scene = await restedScene(0);
  const second = await scene.start({ name: 'second' });
  await scene.until(() => second.isLeading);
  const action = { kind: 'status', code: 503 } as const;
  scene.server.api.faults.add({ userAgent: 'second', verbs: ['list'], resources: ['nodeeniconfigs'], action });
  await scene.clock.advance(100_000);
  const startedMs = scene.clock.monotonicMs();
  await scene.clock.run(second.close());
  t.true(scene.clock.monotonicMs() - startedMs < 1_000);
});
