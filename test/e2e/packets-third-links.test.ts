import test, { type ExecutionContext } from 'ava';
import { connectedNetworks } from '../../agent/node/connected-networks.ts';
import { readHostView } from '../../agent/node/node-probe.ts';
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
        await podsReachNetworks(t, world, behind);
        // Beyond the networks of the link the check of the way back is its owner's.
        await world.node('n1').netns.sysctl({ 'net/ipv4/conf/data0/rp_filter': 2 });
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

async function podsReachNetworks(t: ExecutionContext, world: World, behind: NetnsView): Promise<void> {
  const n1 = world.node('n1');
  const view = readHostView(n1.kernel.rtnetlink);
  const eniMacs = new Set(n1.enis.map(({ mac }) => mac));
  const known = { primaryIfindex: n1.network.primary.ifindex, eniMacs, taken: world.vpc.vpcCidrs };
  const connected = connectedNetworks(view, known);
  t.deepEqual(
    connected.map(({ cidr, ifname }) => `${cidr} ${ifname}`),
    ['192.168.50.0/24 data0', 'fd50::/64 data0'],
  );
  n1.network = { ...n1.network, connected };
  await n1.reach();
  await world.serve(behind, 'behind');
  for (const family of FAMILIES) {
    const { neighbour } = THIRD[family];
    for (const name of ['a1', 'b1']) {
      const pod = world.pod(name);
      t.is(
        await world.ask(pod.netns, 'tcp', neighbour, WHO_PORT),
        `behind ${pod.ips[family]}`,
        `${name}, IPv${family}`,
      );
    }
    t.is(await world.ask(n1.netns, 'tcp', neighbour, WHO_PORT), `behind ${THIRD[family].node}`, 'the node as before');
  }
  await world.vpc.resetPacketLog();
  await n1.netns.ip('link', 'set', 'data0', 'down');
  const { netns, ips } = world.pod('a1');
  for (const family of FAMILIES) {
    t.false(await netns.ping(THIRD[family].neighbour, { waitMs: 300 }));
    const ways = await world.waysOf(ips[family], THIRD[family].neighbour);
    t.deepEqual(
      ways.filter((way) => way === 'n1/eth0'),
      [],
      'never by the primary interface with the address of the Pod',
    );
  }
  await n1.netns.ip('link', 'set', 'data0', 'up');
  await restoreThirdLink(world);
  await n1.reach();
}

async function addThirdLink(world: World): Promise<NetnsView> {
  const behind = new NetnsView(`${world.vpc.prefix}behind`);
  const { netns } = world.node('n1');
  await netns.ip('netns', 'add', behind.name);
  await netns.ip('link', 'add', 'data0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', behind.name);
  await netns.ipBatch(['link set data0 up']);
  await behind.ipBatch(['link set lo up', 'link set eth0 up']);
  await restoreThirdLink(world);
  for (const family of FAMILIES) {
    const { node, neighbour, bits, client, vpc } = THIRD[family];
    const nodad = family === 6 ? ' nodad' : '';
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

/** Gives the node its addresses on the link, and the routes by it, which went with the link. */
async function restoreThirdLink(world: World): Promise<void> {
  const { netns } = world.node('n1');
  for (const family of FAMILIES) {
    const { node, neighbour, bits, beyond } = THIRD[family];
    const nodad = family === 6 ? ' nodad' : '';
    await netns.ipBatch(
      [`address replace ${node}/${bits} dev data0${nodad}`, `route replace ${beyond} via ${neighbour} dev data0`],
      family,
    );
  }
}
