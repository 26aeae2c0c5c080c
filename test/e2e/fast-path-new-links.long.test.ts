// Long: it waits until the links of new Pods get their filters.
import test from 'ava';
import { describeLoss, startTraffic } from '../support/traffic.ts';
import { waitUntil } from '../support/wait-until.ts';
import { programFilters } from './support/fast-filters.ts';
import { closeScene, openScene } from './support/scene.ts';

// A Pod's link has the place of its filters since it exists, so that they come without a lost packet.

/** How many Pods: the kernel throws away what a link sends for 0.1 ms, in which a packet or two come. */
const PODS = 3;

test('the filters of a new link come under its traffic, and no packet is lost', async (t) => {
  t.timeout(300_000);
  const scene = await openScene({ ruleMode: 'compact', agentFlags: { 'fast-path': 'bpf' } });
  try {
    const { node, vpc } = scene;
    for (let count = 0; count < PODS; count++) {
      const before = await node.hostVeths();
      const pod = await node.addPod({ conf: node.conf({ filterPlace: true }) });
      const [link = ''] = (await node.hostVeths()).filter((name) => !before.includes(name));
      const traffic = await startTraffic(vpc.outside, pod, { rate: 10_000 });
      try {
        const devs = async () => (await programFilters(node.netns)).map(({ dev }) => dev);
        t.false((await devs()).includes(link), 'the traffic began before');
        await waitUntil(async () => (await devs()).includes(link), { what: `filters on ${link}`, everyMs: 100 });
        t.deepEqual(describeLoss(await traffic.finish()), []);
      } finally {
        await traffic.close();
      }
      await node.delete(pod);
    }
  } finally {
    await closeScene(scene);
  }
});
