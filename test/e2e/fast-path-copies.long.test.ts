// Long: each test opens a VPC and sends for four seconds, as UDP is learned after two.
import test, { type ExecutionContext } from 'ava';
import { describeLoss, startTraffic } from '../support/traffic.ts';
import { endOf, flowsOf, learnedTraffic, withWorld } from './packets/fast-world.ts';
import type { World } from './packets/world.ts';

// Copies of packets that other programs send to an ENI or a Pod teach nothing: the flow goes on where the kernel leads it.

/** An address behind a link of the node that is none of ours, and so without programs. */
const SIDE = '198.51.100.9';
const RUN_MS = 4_000;
/** Shorter than a flow is followed. */
const LOOK_MS = 100;

for (const [how, copies] of [
  [
    'dup, as the target TEE',
    (pod: string) => `table ip copies {
    chain post { type filter hook postrouting priority 0; ip daddr ${SIDE} dup to ${pod}; }
  }`,
  ],
  [
    'dup at the egress of the link',
    (_pod: string, link: string) => `table netdev copies {
    chain out { type filter hook egress device "side0" priority 0; ip daddr ${SIDE} dup to "${link}"; }
  }`,
  ],
] as const)
  test(`fast path: copies to a Pod's link do not lead a flow there, ${how}`, async (t) => {
    await withWorld(async (world) => {
      const { netns } = world.node('n1');
      const b1 = world.pod('b1');
      const side = await layAside(world);
      await netns.nft(copies(b1.ips[4], b1.network.hostVeth.name));
      const a1 = endOf(world, 'a1', 4);
      const traffic = await startTraffic(a1, { netns: side, ip: SIDE }, { rate: 500 });
      t.teardown(() => traffic.close());
      await sleep(RUN_MS);
      await learnsNothing(t, world, a1.ip);
      t.deepEqual(describeLoss(await traffic.finish()), []);
    });
  });

for (const how of ['of nftables, and the packet itself is dropped', 'of traffic control'] as const)
  test(`fast path: a copy is not learned in the place of a packet that leaves by an ENI, ${how}`, async (t) => {
    await withWorld(async (world) => {
      const [a1, b1, c1] = [world.pod('a1'), world.pod('b1'), world.pod('c1')];
      await learnedTraffic(t, world, 'a1', 'c1');
      const { netns } = world.node('n1');
      const eni = a1.node.enis[0]?.ifname ?? '';
      // The copy passes this hook too, and leaves by another link.
      const rule = `ip saddr ${a1.ips[4]} ip daddr ${c1.ips[4]} oifname ${eni} dup to ${b1.ips[4]} drop`;
      const mirror = `u32 match u32 0 0 action mirred egress mirror dev ${b1.network.hostVeth.name}`;
      if (how === 'of traffic control')
        await netns.run(['tc', 'filter', 'add', 'dev', eni, 'egress', 'pref', '1', ...mirror.split(' ')]);
      else
        await netns.nft(`table ip copies {
        chain post { type filter hook postrouting priority 0; ${rule}; }
      }`);
      const index = b1.network.hostVeth.ifindex;
      const endMs = performance.now() + RUN_MS;
      while (performance.now() < endMs) {
        const flows = flowsOf(world).flows();
        t.deepEqual(
          flows.filter(({ iif, oif }) => iif === a1.network.hostVeth.ifindex && oif === index),
          [],
        );
        await sleep(LOOK_MS);
      }
    });
  });

/** Makes a namespace behind a link of the node, which packets of Pods for its address leave by. */
async function layAside(world: World) {
  const { netns } = world.node('n1');
  const side = await world.makeSandbox('side');
  await netns.ip('link', 'add', 'side0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', side.name);
  await netns.ip('link', 'set', 'side0', 'up');
  await side.ip('link', 'set', 'eth0', 'up');
  await side.ip('address', 'add', `${SIDE}/32`, 'dev', 'eth0');
  await side.ip('route', 'add', '169.254.9.9', 'dev', 'eth0');
  await side.ip('route', 'add', 'default', 'via', '169.254.9.9', 'dev', 'eth0');
  await netns.ip('address', 'add', '169.254.9.9/32', 'dev', 'side0');
  await netns.ip('route', 'add', SIDE, 'dev', 'side0');
  await netns.ip('rule', 'add', 'to', SIDE, 'lookup', 'main', 'pref', '1');
  return side;
}

async function learnsNothing(t: ExecutionContext, world: World, src: string): Promise<void> {
  t.deepEqual(
    flowsOf(world)
      .flows()
      .filter((flow) => flow.src === src && flow.dst === SIDE)
      .map(({ iif, oif }) => ({ iif, oif })),
    [],
  );
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
