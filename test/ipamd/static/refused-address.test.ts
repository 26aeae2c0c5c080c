import test from 'ava';
import { StaticCluster } from './static-cluster.ts';

/** Longer than a claim without any trouble waits, shorter than the pause after one refusal. */
const SOON_MS = 20_000;

for (const refusedMs of [0, 70_000]) {
  test(`startIpamd: what the cloud refused of an address for ${refusedMs} ms is no word about the next one of the name`, async (t) => {
    const cluster = await StaticCluster.make({ a: 3 });
    await cluster.startIpamd();
    cluster.takeIp('10.1.9.9', 'subnet-pods0001');
    await cluster.createPod('web-0', 'a', { 'tke.cloud.tencent.com/nominated-vpc-ip': '10.1.9.9' });
    await cluster.until(() => cluster.why('web-0').startsWith('AddressTaken'), 'not said');
    await cluster.pass(refusedMs);
    await cluster.deletePod('web-0');
    await cluster.deleteClaim('web-0');
    await cluster.until(() => cluster.claim('web-0') === undefined, 'does not end');
    const uid = await cluster.createPod('web-0', 'a');
    await cluster.pass(SOON_MS);
    t.regex(cluster.ipOf(uid) ?? cluster.why('web-0'), /^10\.1\./);
    await cluster.stopIpamd();
  });
}
