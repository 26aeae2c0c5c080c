import test from 'ava';
import { DirectCluster } from '../../exclusive/exclusive-cluster.ts';
import { StaticCluster } from './static-cluster.ts';
import { VirtualKubelet } from './super-nodes.ts';

/** How long an address rests before another name may have it, and how much later that is seen. */
const REST_MS = 120_000;
const SEEN_MS = 5_000;

test('the address of a Pod of a super node rests from its end, however long ago ipamd looked', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 }, []);
  const eklet = new VirtualKubelet(cluster);
  await eklet.join('eklet-1');
  await cluster.startIpamd();
  const uid = await cluster.createPod('web-0', 'eklet-1', {});
  const isServed = () => eklet.ipOf(uid) !== undefined && cluster.phase('web-0') === 'Bound';
  await eklet.until(isServed, () => cluster.why('web-0'));
  await eklet.pass(600_000);
  const endMs = cluster.scene.clock.monotonicMs();
  await eklet.deletePod('web-0');
  await cluster.deleteClaim('web-0');
  await eklet.until(
    () => cluster.claim('web-0') === undefined,
    () => cluster.why('web-0'),
  );
  const restMs = cluster.scene.clock.monotonicMs() - endMs;
  t.true(restMs >= REST_MS && restMs < REST_MS + SEEN_MS, `it rests ${restMs} ms`);
  await cluster.stopIpamd();
});

for (const { what, isGivenUpFirst, outlivesMs, restarts } of [
  { what: 'its claim is deleted first', isGivenUpFirst: true, outlivesMs: 115_000, restarts: false },
  { what: 'its claim is deleted last', isGivenUpFirst: false, outlivesMs: 200_000, restarts: false },
  { what: 'ipamd restarts after it', isGivenUpFirst: false, outlivesMs: 200_000, restarts: true },
])
  test(`the address of a sandbox that outlives its Pod rests from the end of the sandbox: ${what}`, async (t) => {
    const cluster = await StaticCluster.make({ a: 3 }, []);
    await cluster.startIpamd();
    const uid = await cluster.createPod('web-0', 'a', {});
    await cluster.until(() => cluster.ipOf(uid) !== undefined && cluster.phase('web-0') === 'Bound');
    await cluster.pass(60_000);
    await cluster.forcePod('web-0');
    if (isGivenUpFirst) await cluster.deleteClaim('web-0');
    await cluster.pass(outlivesMs);
    const endMs = cluster.scene.clock.monotonicMs();
    cluster.endSandbox(uid);
    if (restarts) {
      await cluster.stopIpamd();
      await cluster.startIpamd();
    }
    if (!isGivenUpFirst) await cluster.deleteClaim('web-0');
    await cluster.until(() => cluster.claim('web-0') === undefined);
    const restMs = cluster.scene.clock.monotonicMs() - endMs;
    t.true(restMs >= REST_MS && restMs < REST_MS + SEEN_MS, `it rests ${restMs} ms`);
    await cluster.stopIpamd();
  });

test('the exclusive ENI of a Pod that keeps nothing does not rest: the next Pod needs its place', async (t) => {
  const cluster = await DirectCluster.make({ a: 3 });
  await cluster.startIpamd();
  const groups = { 'tke.cloud.tencent.com/pod-security-groups': 'sg-00000001' };
  for (const name of ['p1', 'p2', 'p3']) await cluster.createPod(name, 'a', groups);
  await cluster.until(() => cluster.sandboxes.size === 3, 'all places are taken');
  await cluster.pass(300_000);
  const { clock } = cluster.scene;
  const endMs = clock.monotonicMs();
  await cluster.deletePod('p1');
  const uid = await cluster.createPod('p4', 'a', groups);
  await cluster.until(() => cluster.sandboxes.has(uid), 'p4 has its ENI');
  t.true(clock.monotonicMs() - endMs < 10_000, `${clock.monotonicMs() - endMs} ms`);
  t.deepEqual(
    cluster.events().filter((text) => text.includes('NodeFull')),
    [],
  );
  await cluster.stopIpamd();
});
