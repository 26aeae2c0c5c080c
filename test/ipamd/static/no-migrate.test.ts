import test from 'ava';
import { StaticCluster } from './static-cluster.ts';

/** What a move may take that falls back on taking off and assigning. */
const SOON_MS = 60_000;

for (const code of ['UnauthorizedOperation', 'UnsupportedOperation.InvalidState', 'InternalError']) {
  test(`startIpamd: moves an address by taking it off and assigning it when the cloud moves none (${code})`, async (t) => {
    const cluster = await StaticCluster.make({ a: 3, b: 3 });
    await cluster.startIpamd();
    const first = await cluster.createPod('web-0', 'a');
    const other = await cluster.createPod('web-1', 'b');
    await cluster.until(() => [first, other].every((uid) => cluster.ipOf(uid) !== undefined), 'no addresses');
    const ip = cluster.ipOf(first) ?? 'none';
    const { faults } = cluster.scene.host;
    faults.add({ fault: { kind: 'error', code }, actions: ['MigratePrivateIpAddress'], times: 1_000 });
    await cluster.deletePod('web-0');
    const second = await cluster.createPod('web-0', 'b');
    await cluster.pass(SOON_MS);
    t.is(cluster.ipOf(second) ?? cluster.why('web-0'), ip);
    t.deepEqual(cluster.broken(), []);
    await cluster.stopIpamd();
  });
}
