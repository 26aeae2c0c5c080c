import { FAST_PATH_MARK } from '../../dataplane/numbers.ts';
import { longTest, shortTest } from '../support/suite-part.ts';
import { startTcpStream } from '../support/tcp-stream.ts';
import { describeLoss, startTraffic } from '../support/traffic.ts';
import { waitUntil } from '../support/wait-until.ts';
import { endOf, flowsOf, learnedTraffic, PORT, RATE, withWorld } from './packets/fast-world.ts';
import { countedSince, sendDatagrams, silence, watchForward, watchInput } from './packets/watch.ts';
import { WHO_PORT, type World } from './packets/world.ts';
import { awaitLearned } from './support/learned-flows.ts';

// What the two programs of the fast path do with flows that they know, and when they stop. Judged by packets: by counters in
// the hook forward of the node, which a packet of the fast path does not pass, and in the Pods.

const FAMILIES = [4, 6] as const;
/** The fast path takes the kernel's decision again once a second; the rest is for a busy machine. */
const TTL_MS = 1_000;
const SLACK_MS = 400;

shortTest('fast path: flows of all ways leave the slow one, and no packet is lost', async (t) => {
  await withWorld(async (world) => {
    const ways = FAMILIES.flatMap((family) => [
      { name: `to another node, IPv${family}`, a: endOf(world, 'a1', family), b: endOf(world, 'c1', family) },
      { name: `to a neighbour, IPv${family}`, a: endOf(world, 'a2', family), b: endOf(world, 'b1', family) },
      { name: `from outside, IPv${family}`, a: outside(world, family), b: endOf(world, 'b2', family) },
    ]);
    const tcp = await Promise.all(ways.map(({ a, b }, at) => startTcpStream(a, b, 7100 + at)));
    const udp = await Promise.all(ways.map(({ a, b }, at) => startTraffic(a, b, { port: 7200 + at, rate: RATE })));
    for (const [at, { name, a, b }] of ways.entries()) {
      await awaitLearned(flowsOf(world), { src: a.ip, dst: b.ip, dport: 7200 + at }, name);
      await awaitLearned(flowsOf(world), { src: b.ip, dst: a.ip, dport: 7200 + at }, name);
    }
    const seen = await watchForward(world.node('n1').netns);
    const counted = await countedSince(seen, 1_000);
    // 12 directions of 200 and of 500 packets a second, of each of which one or two are to be seen.
    t.true(counted > 10 && counted < 12 * 70, `${counted} packets took the slow way in a second`);
    for (const [at, traffic] of udp.entries()) t.deepEqual(describeLoss(await traffic.finish()), [], ways[at]?.name);
    for (const [at, stream] of tcp.entries()) t.deepEqual(await stream.finish(), [], ways[at]?.name);
    t.deepEqual(await world.vpc.droppedPackets(), []);
  });
});

shortTest(
  'fast path: a rule that drops in FORWARD holds within a second, and at once when the flows are forgotten',
  async (t) => {
    await withWorld(async (world) => {
      const [n1, c1] = [world.node('n1'), world.pod('c1')];
      const got = await watchInput(c1.netns, PORT);
      const rule = ['FORWARD', '-d', c1.ips[4], '-j', 'DROP'];
      for (const isForgotten of [false, true]) {
        const traffic = await learnedTraffic(t, world, 'a1', 'c1');
        await n1.netns.run(['iptables', '-w', '-I', ...rule]);
        const startedMs = performance.now();
        if (isForgotten) flowsOf(world).forgetFlows();
        const tookMs = (await silence(got)) - startedMs;
        t.true(tookMs < SLACK_MS + (isForgotten ? 0 : TTL_MS), `${tookMs} ms, forgotten: ${isForgotten}`);
        await n1.netns.run(['iptables', '-w', '-D', ...rule]);
        await traffic.close();
      }
    });
  },
);

longTest('fast path: a connection that is deleted is decided again within a second', async (t) => {
  await withWorld(async (world) => {
    const [n1, c1] = [world.node('n1'), world.pod('c1')];
    const got = await watchInput(c1.netns, PORT);
    const traffic = await learnedTraffic(t, world, 'a1', 'c1');
    // As an engine of policies: what is established goes on, and nothing new begins.
    const rule = ['FORWARD', '-p', 'udp', '-m', 'conntrack', '--ctstate', 'NEW', '-j', 'DROP'];
    await n1.netns.run(['iptables', '-w', '-I', ...rule]);
    t.true((await countedSince(got, 1_500)) > RATE);
    await n1.netns.run(['conntrack', '-D', '-p', 'udp', '--dport', `${PORT}`]);
    const startedMs = performance.now();
    const tookMs = (await silence(got)) - startedMs;
    t.true(tookMs < TTL_MS + SLACK_MS, `${tookMs} ms`);
    await traffic.close();
  });
});

shortTest(
  'fast path: the addresses and ports of a live flow are dropped when they come from another Pod’s link',
  async (t) => {
    await withWorld(async (world) => {
      const [a1, a2, c1] = [world.pod('a1'), world.pod('a2'), world.pod('c1')];
      const traffic = await learnedTraffic(t, world, 'a1', 'c1');
      const bytes = 300;
      const got = await watchInput(c1.netns, PORT, bytes);
      await a2.netns.ip('address', 'add', `${a1.ips[4]}/32`, 'dev', 'eth0');
      const flow = { from: a1.ips[4], to: c1.ips[4], port: PORT, bytes, count: 200 };
      await sendDatagrams(a2.netns, flow);
      t.is(await got(), 0);
      t.deepEqual(describeLoss(await traffic.finish()), []);
      // The same from the Pod itself: the sender and the counter work.
      await sendDatagrams(a1.netns, flow);
      t.is(await got(), 200);
    });
  },
);

longTest('fast path: fragments of a learned flow arrive', async (t) => {
  await withWorld(async (world) => {
    const [a1, c1] = [world.pod('a1'), world.pod('c1')];
    const traffic = await learnedTraffic(t, world, 'a1', 'c1');
    const bytes = 4000;
    const got = await watchInput(c1.netns, PORT, bytes);
    await traffic.finish();
    await sendDatagrams(a1.netns, { from: a1.ips[4], to: c1.ips[4], port: PORT, bytes, count: 100 });
    t.is(await got(), 100);
  });
});

longTest('fast path: an address that moves to another Pod’s link gets its packets there', async (t) => {
  await withWorld(async (world) => {
    const pod = world.pod('a1');
    const traffic = await learnedTraffic(t, world, 'c1', pod.name);
    const sandbox = await world.makeSandbox(`new-${pod.name}`);
    const got = await watchInput(sandbox, PORT);
    await pod.node.unwire(pod);
    const { ifindex: _gone, ...hostVeth } = pod.network.hostVeth;
    pod.node.wire({ netns: sandbox, network: { ...pod.network, hostVeth } });
    const startedMs = performance.now();
    await waitUntil(async () => (await got()) > 0, { what: 'a packet in the new Pod', everyMs: 5 });
    const tookMs = performance.now() - startedMs;
    t.log(`figure: the first packet after ${tookMs.toFixed(0)} ms`);
    t.true(tookMs < TTL_MS + SLACK_MS, `${tookMs} ms`);
    await traffic.close();
  });
});

shortTest(
  'fast path: a translated connection is not learned, also when another program sets the bit of the mark',
  async (t) => {
    await withWorld(async (world) => {
      const [n1, a1] = [world.node('n1'), world.pod('a1')];
      const client = world.vpc.outside.netns;
      const own = n1.enis[0]?.addresses.find(({ ip }) => !ip.includes(':'))?.ip ?? '';
      await n1.netns.nft(`table inet foreign {
      chain early { type filter hook prerouting priority raw; meta mark set meta mark or ${FAST_PATH_MARK}
      }
    }`);
      const target = `${a1.ips[4]}:${WHO_PORT}`;
      const rule = ['-d', own, '-p', 'tcp', '--dport', '30080', '-j', 'DNAT', '--to-destination', target];
      await n1.netns.run(['iptables', '-w', '-t', 'nat', '-A', 'PREROUTING', ...rule]);
      for (let count = 0; count < 5; count++) {
        t.is(await world.ask(client, 'tcp', own, 30080), `a1 ${world.outside(4)}`);
      }
      t.deepEqual(flowsOf(world).flows(), []);
      // The same by the Pod's own address is learned while it lasts: a FIN ends its flows.
      const stream = await startTcpStream(outside(world, 4), endOf(world, 'a1', 4), 7100);
      await awaitLearned(flowsOf(world), { src: world.outside(4), dst: a1.ips[4], dport: 7100 }, 'by its own address');
      t.deepEqual(await stream.finish(), []);
    });
  },
);

function outside(world: World, family: 4 | 6) {
  return { netns: world.vpc.outside.netns, ip: world.outside(family) };
}
