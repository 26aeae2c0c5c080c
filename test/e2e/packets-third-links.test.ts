import test, { type ExecutionContext } from 'ava';
import { NetnsView } from '../../sim/support/netns.ts';
import { partOf } from '../support/suite-part.ts';
import { openWorld, WHO_PORT, type World } from './packets/world.ts';

const FAMILIES = [4, 6] as const;
const NODE_PORT = 30080;

/** A link of another program on node n1: the node's address on it, its neighbour, and a client beyond that. */
const THIRD = {
  4: {
    node: '192.168.50.2',
    neighbour: '192.168.50.1',
    bits: 24,
    client: '192.168.60.7',
    beyond: '192.168.60.0/24',
    vpc: '10.0.0.0/16',
  },
  6: { node: 'fd50::2', neighbour: 'fd50::1', bits: 64, client: 'fd60::7', beyond: 'fd60::/64', vpc: 'fd00:10::/32' },
} as const;

for (const ruleMode of partOf(['compact', 'per-pod'] as const, (mode) => mode === 'compact')) {
  test.serial(
    `packets: what came in by a link that is neither an ENI nor the primary is answered by it, ${ruleMode}`,
    async (t) => {
      const world = await openWorld({ network: { ruleMode } });
      try {
        const behind = await addThirdLink(world);
        await answersComeBack(t, world, behind);
        // What the VPC brought before, a third link may bring now.
        for (const family of FAMILIES) t.true(await world.pod('a1').netns.ping(world.outside(family)));
        t.deepEqual(await world.vpc.droppedPackets(), []);
      } finally {
        await world.close();
      }
    },
  );
}

async function answersComeBack(t: ExecutionContext, world: World, behind: NetnsView): Promise<void> {
  for (const family of FAMILIES) {
    const { client, node, neighbour } = THIRD[family];
    const [a1, b1] = [world.pod('a1'), world.pod('b1')];
    t.is(
      await world.ask(behind, 'tcp', a1.ips[family], WHO_PORT),
      `a1 ${client}`,
      `beyond a gateway -> a1, IPv${family}`,
    );
    t.is(
      await world.ask(behind, 'udp', b1.ips[family], WHO_PORT),
      `b1 ${client}`,
      `beyond a gateway -> b1, IPv${family}`,
    );
    const tool = family === 4 ? 'iptables' : 'ip6tables';
    const to = family === 4 ? `${b1.ips[4]}:${WHO_PORT}` : `[${b1.ips[6]}]:${WHO_PORT}`;
    const dnat = `PREROUTING -d ${node} -p tcp --dport ${NODE_PORT} -j DNAT --to-destination ${to}`;
    await world.node('n1').netns.run([tool, '-t', 'nat', '-A', ...dnat.split(' ')]);
    t.is(
      await world.ask(behind, 'tcp', node, NODE_PORT),
      `b1 ${neighbour}`,
      `NodePort at the link's address, IPv${family}`,
    );
  }
}

async function addThirdLink(world: World): Promise<NetnsView> {
  const behind = new NetnsView(`${world.vpc.prefix}behind`);
  const { netns } = world.node('n1');
  await netns.ip('netns', 'add', behind.name);
  await netns.ip('link', 'add', 'data0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', behind.name);
  // Beyond the networks of the link the check of the way back is of the link's owner.
  await netns.sysctl({ 'net/ipv4/conf/data0/rp_filter': 2 });
  await netns.ipBatch(['link set data0 up']);
  await behind.ipBatch(['link set lo up', 'link set eth0 up']);
  for (const family of FAMILIES) {
    const { node, neighbour, bits, client, beyond, vpc } = THIRD[family];
    const nodad = family === 6 ? ' nodad' : '';
    await netns.ipBatch(
      [`address add ${node}/${bits} dev data0${nodad}`, `route add ${beyond} via ${neighbour}`],
      family,
    );
    await behind.ipBatch(
      [
        `address add ${neighbour}/${bits} dev eth0${nodad}`,
        `address add ${client}/${bits} dev lo${nodad}`,
        `route add ${vpc} via ${node} src ${client}`,
      ],
      family,
    );
  }
  return behind;
}
