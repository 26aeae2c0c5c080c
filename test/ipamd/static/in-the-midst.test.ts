import test from 'ava';
import { IS_LONG, shortTest } from '../../support/suite-part.ts';
import { StaticCluster } from './static-cluster.ts';

/** Longer than any move without a fault of the cloud, far shorter than a wait that somebody has to end. */
const SOON_MS = 30_000;
/** Moments of a move: before its agent offers, offered, let go of, asked for, moved. */
const MOMENTS_MS = IS_LONG ? [250, 750, 1_250, 2_000, 3_000] : [750, 2_000];

/** Starts Pods and waits for their addresses. */
async function start(cluster: StaticCluster, pods: readonly (readonly [name: string, node: string])[]) {
  const uids: string[] = [];
  for (const [name, node] of pods) uids.push(await cluster.createPod(name, node));
  await cluster.until(() => uids.every((uid) => cluster.ipOf(uid) !== undefined), 'no addresses');
  return uids.map((uid) => cluster.ipOf(uid));
}

/** Two nodes, a Pod on the first whose address is on its way to the second for so long. */
async function begunMove(ms: number, flags: readonly string[] = []) {
  const cluster = await StaticCluster.make({ a: 3, b: 3, c: 3 }, flags);
  await cluster.startIpamd();
  const [ip = 'none'] = await start(cluster, [
    ['web-0', 'a'],
    ['other', 'b'],
  ]);
  await cluster.deletePod('web-0');
  const uid = await cluster.createPod('web-0', 'b');
  await cluster.pass(ms);
  return { cluster, ip, uid };
}

test('startIpamd: a Pod that goes back in the midst of a move has its address there', async (t) => {
  for (const ms of MOMENTS_MS) {
    const { cluster, ip } = await begunMove(ms);
    await cluster.deletePod('web-0');
    const uid = await cluster.createPod('web-0', 'a');
    await cluster.pass(SOON_MS);
    t.is(cluster.ipOf(uid) ?? cluster.why('web-0'), ip, `${ms} ms`);
    t.deepEqual(cluster.broken(), []);
    await cluster.stopIpamd();
  }
});

test('startIpamd: a claim that is given up in the midst of a move ends, and the next Pod gets an address', async (t) => {
  for (const ms of MOMENTS_MS) {
    const { cluster } = await begunMove(ms);
    await cluster.deleteClaim('web-0');
    await cluster.deletePod('web-0');
    await cluster.pass(SOON_MS);
    t.is(cluster.claim('web-0'), undefined, `${ms} ms`);
    const uid = await cluster.createPod('web-0', 'a');
    await cluster.pass(SOON_MS);
    t.regex(cluster.ipOf(uid) ?? cluster.why('web-0'), /^10\.1\./, `${ms} ms`);
    await cluster.stopIpamd();
  }
});

test('startIpamd: a node that is deleted in the midst of a move takes no address with it', async (t) => {
  for (const ms of MOMENTS_MS) {
    for (const gone of ['a', 'b']) {
      const { cluster, ip, uid } = await begunMove(ms, ['--node-release-grace=5s', '--static-takeover-after=30s']);
      await cluster.deleteNode(gone);
      if (gone === 'b') for (const name of ['web-0', 'other']) await cluster.deletePod(name);
      const next = gone === 'b' ? await cluster.createPod('web-0', 'c') : uid;
      await cluster.pass(SOON_MS);
      t.is(cluster.ipOf(next) ?? cluster.why('web-0'), ip, `${gone} after ${ms} ms`);
      await cluster.stopIpamd();
    }
  }
});

shortTest('startIpamd: addresses cross between nodes that have no place free', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 }, [], 1);
  await cluster.startIpamd();
  const all = ['a', 'b'].flatMap((node) => [0, 1, 2, 3, 4].map((index) => [`${node}-${index}`, node] as const));
  const ips = new Map((await start(cluster, all)).map((ip, index) => [all[index]?.[0], ip]));
  for (const name of ['a-0', 'b-0']) await cluster.deletePod(name);
  const crossed = [await cluster.createPod('a-0', 'b'), await cluster.createPod('b-0', 'a')];
  await cluster.pass(SOON_MS);
  t.deepEqual(
    crossed.map((uid) => cluster.ipOf(uid)),
    [ips.get('a-0'), ips.get('b-0')],
  );
  await cluster.stopIpamd();
});
