import test from 'ava';
import { StaticCluster } from './static-cluster.ts';

const COUNT = 12;

test('startIpamd: moves all addresses of a node one after another, and none of them is on no ENI meanwhile', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 });
  await cluster.startIpamd();
  const names = Array.from({ length: COUNT }, (_, index) => `web-${index}`);
  // Its ENI is there, with room for all.
  const first = await cluster.createPod('first', 'b');
  const old: string[] = [];
  for (const name of names) old.push(await cluster.createPod(name, 'a'));
  await cluster.until(() => [first, ...old].every((uid) => cluster.ipOf(uid) !== undefined), 'no addresses');
  const ips = old.map((uid) => cluster.ipOf(uid) ?? '');
  const { faults, model } = cluster.scene.host;
  faults.add({ fault: { kind: 'slow-task', ms: 4_000 }, actions: ['MigratePrivateIpAddress'], times: COUNT });
  const moved: string[] = [];
  for (const name of names) {
    await cluster.deletePod(name);
    moved.push(await cluster.createPod(name, 'b'));
  }
  const lost = new Set<string>();
  await cluster.until(() => {
    const placed = new Set([...model.state.enis.values()].flatMap((eni) => [...eni.ips.keys()]));
    for (const ip of ips) if (!placed.has(ip)) lost.add(ip);
    return moved.every((uid) => cluster.ipOf(uid) !== undefined);
  }, 'not moved');
  t.deepEqual([...lost], []);
  t.deepEqual(
    moved.map((uid) => cluster.ipOf(uid)),
    ips,
  );
  await cluster.stopIpamd();
});
