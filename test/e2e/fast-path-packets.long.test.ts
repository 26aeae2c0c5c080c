// Long: each test opens a VPC and waits two seconds for UDP to be learned.
import test from 'ava';
import { openNetns } from '../../netlink/netns.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import { PacketSocket } from '../support/packet-socket.ts';
import { waitUntil } from '../support/wait-until.ts';
import { flowsOf, learnedTraffic, PORT, withWorld } from './packets/fast-world.ts';
import { sendDatagrams, watchArrivals, watchForward, watchInput } from './packets/watch.ts';
import { awaitLearned } from './support/learned-flows.ts';

// Single packets of flows that are learned: what a packet socket sees of them, and what is too long or has no hop left.

const COUNT = 200;
const BYTES = 300;
/** Nodes and the router between a Pod and one on another node. */
const HOPS = 3;
/** The router of the small VPC changes a greater one. */
const TTL = 10;

test('fast path: packet sockets on the Pod’s link and on the ENI see each packet of both directions once', async (t) => {
  await withWorld(async (world) => {
    const { netns, enis } = world.node('n1');
    await (await learnedTraffic(t, world, 'a1', 'c1')).finish();
    const [a1, c1] = [world.pod('a1'), world.pod('c1')];
    using node = openNetns(netns.path);
    using onPod = new PacketSocket(node, a1.network.hostVeth.ifindex ?? 0);
    using onEni = new PacketSocket(node, enis[0]?.ifindex ?? 0);
    for (const [from, to] of [
      [a1, c1],
      [c1, a1],
    ] as const) {
      const slow = await watchForward(netns, `udp length ${BYTES + 8}`);
      const arrived = await watchInput(to.netns, PORT, BYTES);
      await sendDatagrams(from.netns, { from: from.ips[4], to: to.ips[4], port: PORT, bytes: BYTES, count: COUNT });
      t.is(await arrived(), COUNT);
      // The first one, and those that are sent before what it taught is known.
      t.true((await slow()) < COUNT / 2, `${await slow()} took the slow way`);
      // Ethernet, IPv4, UDP.
      const isOurs = (frame: Buffer) => frame.length === 14 + 20 + 8 + BYTES;
      t.is(onPod.read().filter(isOurs).length, COUNT, `${from.name} to ${to.name}, on the Pod’s link`);
      t.is(onEni.read().filter(isOurs).length, COUNT, `${from.name} to ${to.name}, on the ENI`);
    }
  });
});

test('fast path: each router takes one hop, and where none is left the sender is told', async (t) => {
  await withWorld(async (world) => {
    await (await learnedTraffic(t, world, 'a1', 'c1')).finish();
    const [a1, c1] = [world.pod('a1'), world.pod('c1')];
    const send = (ttl: number, count: number) =>
      sendDatagrams(a1.netns, { from: a1.ips[4], to: c1.ips[4], port: PORT, bytes: BYTES, count, ttl });
    const whole = await watchArrivals(c1.netns, `udp length ${BYTES + 8} ip ttl ${TTL - HOPS}`);
    const slow = await watchForward(world.node('n1').netns, `udp length ${BYTES + 8}`);
    await send(TTL, COUNT);
    t.is(await whole(), COUNT);
    t.true((await slow()) < COUNT / 2);
    const last = await watchArrivals(c1.netns, `udp length ${BYTES + 8} ip ttl 1`);
    await send(HOPS + 1, COUNT);
    t.is(await last(), COUNT);
    const got = await watchInput(c1.netns, PORT, BYTES);
    for (const [ttl, router] of [
      [1, '169.254.1.1'],
      [HOPS, undefined],
    ] as const) {
      const told = await watchArrivals(a1.netns, 'icmp type time-exceeded');
      // The kernel sends few of these.
      await send(ttl, 5);
      await waitUntil(async () => (await told()) > 0, {
        what: `time exceeded for a TTL of ${ttl} by ${router ?? 'n2'}`,
      });
    }
    t.is(await got(), 0);
  });
});

test('fast path: a smaller MTU of the ENI holds for a learned flow; who sends too long packets is told', async (t) => {
  await withWorld(async (world) => {
    const traffic = await learnedTraffic(t, world, 'a1', 'c1');
    const [a1, c1] = [world.pod('a1'), world.pod('c1')];
    const eni = world.node('n1').enis[0]?.ifname ?? '';
    await traffic.finish();
    const flow = { from: a1.ips[4], to: c1.ips[4], port: PORT };
    const arrived = await watchInput(c1.netns, PORT, 1_400);
    await sendDatagrams(a1.netns, { ...flow, bytes: 1_400, count: COUNT });
    t.is(await arrived(), COUNT, 'with an MTU of 1500');
    await world.node('n1').netns.ip('link', 'set', eni, 'mtu', '1300');
    const startedMs = performance.now();
    const sending = sendDatagrams(a1.netns, { ...flow, bytes: 1_400, count: 10 * COUNT });
    await mtuTo(a1.netns, c1.ips[4], 1300);
    t.log(`figure: told after ${(performance.now() - startedMs).toFixed(0)} ms`);
    await sending;
    // Learned with the MTU of now: short packets take the fast path, a long one the slow way.
    await a1.netns.ip('route', 'flush', 'cache');
    await sendDatagrams(a1.netns, { ...flow, bytes: BYTES, count: COUNT });
    await awaitLearned(flowsOf(world), { src: flow.from, dst: flow.to, dport: PORT });
    await sendDatagrams(a1.netns, { ...flow, bytes: 1_400, count: 1 });
    await mtuTo(a1.netns, c1.ips[4], 1300);
    // From here on the Pod cuts them itself.
    const whole = await watchInput(c1.netns, PORT, 1_400);
    await sendDatagrams(a1.netns, { ...flow, bytes: 1_400, count: COUNT });
    t.is(await whole(), COUNT);
  });
});

/** Waits until a namespace has learned the MTU of the path to an address. */
async function mtuTo(netns: NetnsView, ip: string, mtu: number): Promise<void> {
  await waitUntil(async () => new RegExp(`mtu ${mtu}\\b`).test(await netns.ip('route', 'get', ip)), {
    what: `an MTU of ${mtu} to ${ip}`,
  });
}
