import test from 'ava';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { NECS } from '../../../ipamd/supply/nec-access.ts';
import { updateGuarded } from '../../../kube/guarded-update.ts';
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

/** A node with an agent that wants `count` addresses, and offers the rest. */
async function busyNode(scene: ShellScene): Promise<(count: number) => Promise<void>> {
  let wanted = 12;
  await scene.join('n1');
  void runAgent(scene.clock, scene.server.client({ userAgent: 'agent' }), 'n1', ({ eniInfos = [] }) => {
    const all = eniInfos.flatMap(({ addresses = [] }) => addresses).filter(({ state }) => state === 'Assigned');
    const releasableIPs = all.slice(wanted).map(({ ip, assignmentID }) => ({ ip, assignmentID }));
    return { desiredRouteENIIP: wanted, releasableIPs };
  });
  const want = async (count: number): Promise<void> => {
    wanted = count;
    await scene.until(() => assignedIps(statusOf(scene)).length === count && statusOf(scene).intents?.length === 0);
  };
  await want(12);
  return want;
}

test('a standby whose watch is minutes behind leads, and undoes nothing that the former leader wrote', async (t) => {
  const scene = await shellScene();
  const first = await scene.start({ name: 'first' });
  await scene.until(() => first.isLeading);
  const want = await busyNode(scene);
  // From its first event on: the list is what the standby knows.
  const action = { kind: 'watch-delay', ms: 180_000 } as const;
  scene.server.api.faults.add({ userAgent: 'second', verbs: ['watch'], resources: ['nodeeniconfigs'], action });
  const second = await scene.start({ name: 'second' });
  await scene.until(() => second.readiness() === undefined);
  await scene.clock.advance(5_000);
  await want(4);
  await scene.clock.run(first.close());
  await scene.until(() => second.isLeading);
  const kept = assignedIps(statusOf(scene));
  for (let waited = 0; waited < 300_000; waited += 5_000) {
    await scene.clock.advance(5_000);
    t.deepEqual(blackHoles(scene), []);
    t.deepEqual(assignedIps(statusOf(scene)), kept);
  }
  t.deepEqual(mended(scene), []);
  await want(8);
  t.deepEqual(blackHoles(scene), []);
  await scene.clock.run(second.close());
});

test('the last write of a former leader, which comes after the first look of the new one, is not undone', async (t) => {
  const scene = await shellScene();
  const first = await scene.start({ name: 'first' });
  await scene.until(() => first.isLeading);
  await busyNode(scene);
  await scene.clock.run(first.close());
  const second = await scene.start({ name: 'second' });
  await scene.until(() => second.isLeading);
  await scene.clock.advance(10_000);
  const late = (status: NodeEniConfigStatus): NodeEniConfigStatus => ({
    ...status,
    describedAt: '2026-01-02T03:04:05Z',
  });
  const write = (change: (status: NodeEniConfigStatus) => NodeEniConfigStatus) =>
    scene.clock.run(
      updateGuarded(scene.kube, NECS, { name: 'n1' }, (object) => ({ ...object, status: change(statusOf(scene)) })),
    );
  await write(late);
  await scene.clock.advance(10_000);
  t.is(statusOf(scene).describedAt, '2026-01-02T03:04:05Z');
  t.deepEqual(mended(scene), []);
  // A minute later it is the edit of somebody else.
  await scene.clock.advance(60_000);
  await write((status) => ({ ...status, describedAt: '2026-02-02T02:02:02Z' }));
  await scene.clock.advance(10_000);
  t.is(statusOf(scene).describedAt, '2026-01-02T03:04:05Z');
  t.is(mended(scene).length, 1);
  await scene.clock.run(second.close());
});
