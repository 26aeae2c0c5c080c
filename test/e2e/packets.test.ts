import test, { type ExecutionContext } from 'ava';
import { NetnsView } from '../../sim/support/netns.ts';
import { partOf } from '../support/suite-part.ts';
import { openWorld, WHO_PORT, type World, type WorldSpec } from './packets/world.ts';

// The same questions to every layout and every rp_filter that a node's image may come with.
const WORLDS: Readonly<Record<string, WorldSpec>> = {
  compact: {},
  'compact, all.rp_filter 1': { sysctls: { 'net/ipv4/conf/all/rp_filter': 1 } },
  'compact, all.rp_filter 2, src_valid_mark': {
    sysctls: { 'net/ipv4/conf/all/rp_filter': 2, 'net/ipv4/conf/all/src_valid_mark': 1 },
  },
  'compact, rp_filter of the product': {
    network: { rpFilterMode: 'product' },
    sysctls: { 'net/ipv4/conf/all/rp_filter': 1 },
  },
  'per-pod': { network: { ruleMode: 'per-pod' } },
  'compact, fast path': { network: { fastPath: 'bpf' } },
  'per-pod, fast path': { network: { ruleMode: 'per-pod', fastPath: 'bpf' } },
  'per-pod, all.rp_filter 2': {
    network: { ruleMode: 'per-pod' },
    sysctls: { 'net/ipv4/conf/all/rp_filter': 2 },
  },
};

const FAMILIES = [4, 6] as const;
const NODE_PORT = 30080;
const CLUSTER_IP = { 4: '172.20.0.10', 6: 'fd00:20::10' };
const EXTERNAL_IP = '198.51.100.77';

/** One of each layout; the others differ by a setting. */
const isShort = ([name]: readonly [string, WorldSpec]): boolean => ['compact', 'per-pod'].includes(name);

for (const [name, spec] of partOf(Object.entries(WORLDS), isShort)) {
  test.serial(`packets: every way through a node, ${name}`, async (t) => {
    const world = await openWorld(spec);
    try {
      await podsReachAll(t, world);
      await nodesReachPods(t, world);
      await spoofedSourcesAreDropped(t, world);
      await clusterIps(t, world);
      await nodePorts(t, world);
      if (spec.network?.ruleMode !== 'per-pod') await nodePortsOfEnis(t, world);
      await bridgePods(t, world);
      await foreignMarks(t, world);
      await recreatedVeth(t, world);
    } finally {
      await world.close();
    }
  });
}

async function podsReachAll(t: ExecutionContext, world: World): Promise<void> {
  await world.vpc.resetPacketLog();
  for (const family of FAMILIES) {
    const outside = world.outside(family);
    await each(world.pods, async (from) => {
      for (const to of world.pods) {
        if (to !== from) t.true(await from.netns.ping(to.ips[family]), `${from.name} -> ${to.name} IPv${family}`);
      }
      t.true(await from.netns.ping(outside), `${from.name} -> outside IPv${family}`);
      t.true(await world.vpc.outside.netns.ping(from.ips[family]), `outside -> ${from.name} IPv${family}`);
      for (const node of world.nodes) {
        t.true(await from.netns.ping(node.primary[family]), `${from.name} -> ${node.name} IPv${family}`);
      }
    });
    for (const pod of world.pods) {
      t.deepEqual(
        await world.waysOf(pod.ips[family]),
        [pod.eniId],
        `${pod.name} leaves by its own ENI alone, IPv${family}`,
      );
    }
    // Neighbours on one node never take the way over the VPC.
    t.deepEqual(await world.waysOf(world.pod('a1').ips[family], world.pod('b1').ips[family]), []);
  }
  t.deepEqual(await world.vpc.droppedPackets(), []);
}

async function nodesReachPods(t: ExecutionContext, world: World): Promise<void> {
  for (const family of FAMILIES) {
    for (const node of world.nodes) {
      await each(world.pods, async (pod) => {
        t.true(await node.netns.ping(pod.ips[family]), `${node.name} -> ${pod.name} IPv${family}`);
      });
      for (const eni of node.enis) {
        const own = eni.addresses.find(({ ip }) => ip.includes(':') === (family === 6))?.ip ?? '';
        t.true(await world.vpc.outside.netns.ping(own), `outside -> ${eni.eniId} itself, IPv${family}`);
        t.deepEqual(await world.waysOf(own), [eni.eniId], `${eni.eniId} answers by itself`);
      }
    }
  }
  t.deepEqual(await world.vpc.droppedPackets(), []);
}

async function spoofedSourcesAreDropped(t: ExecutionContext, world: World): Promise<void> {
  const [a1, a2, b1, c1, d1] = [world.pod('a1'), world.pod('a2'), world.pod('b1'), world.pod('c1'), world.pod('d1')];
  for (const family of FAMILIES) {
    const length = family === 4 ? 32 : 128;
    const sources = [
      ...[a2, b1, d1].map((pod) => pod.ips[family]),
      ...world.nodes.map((node) => node.primary[family]),
      family === 4 ? '192.0.2.66' : '2001:db8:66::1',
    ];
    await world.vpc.resetPacketLog();
    await a1.netns.ipBatch(
      sources.map((source) => `address add ${source}/${length} dev eth0${family === 6 ? ' nodad' : ''}`),
    );
    await each(sources, async (source) => {
      for (const target of [c1.ips[family], world.outside(family)]) {
        t.false(await a1.netns.ping(target, { from: source, waitMs: 300 }), `${source} forged by a1, for ${target}`);
      }
      t.deepEqual(await world.waysOf(source), [], `nothing from ${source} left the node`);
    });
    await a1.netns.ipBatch(sources.map((source) => `address del ${source}/${length} dev eth0`));
  }
  // Not even the router had to refuse anything: the node did.
  t.deepEqual(await world.vpc.droppedPackets(), []);
}

async function clusterIps(t: ExecutionContext, world: World): Promise<void> {
  const n1 = world.node('n1');
  for (const family of FAMILIES) {
    for (const backend of ['a1', 'b1', 'c1']) {
      const remove = await dnat(n1.netns, family, `-d ${CLUSTER_IP[family]}`, world.pod(backend).ips[family], [
        'PREROUTING',
        'OUTPUT',
      ]);
      for (const protocol of ['tcp', 'udp'] as const) {
        const client = world.pod('a2');
        const answer = await world.ask(client.netns, protocol, CLUSTER_IP[family], NODE_PORT);
        t.is(answer, `${backend} ${client.ips[family]}`, `a2 -> ClusterIP -> ${backend}, ${protocol} IPv${family}`);
        const fromNode = await world.ask(n1.netns, protocol, CLUSTER_IP[family], NODE_PORT);
        t.is(fromNode, `${backend} ${n1.primary[family]}`, `node -> ClusterIP -> ${backend}, ${protocol} IPv${family}`);
      }
      await remove();
    }
  }
}

async function nodePorts(t: ExecutionContext, world: World): Promise<void> {
  const n1 = world.node('n1');
  const router = world.vpc.router;
  await router.ip('route', 'add', `${EXTERNAL_IP}/32`, 'via', n1.primary[4]);
  const client = world.vpc.outside.netns;
  for (const family of FAMILIES) {
    for (const backend of ['a1', 'b1']) {
      for (const host of family === 4 ? [n1.primary[4], EXTERNAL_IP] : [n1.primary[6]]) {
        const remove = await dnat(n1.netns, family, `-d ${host}`, world.pod(backend).ips[family], ['PREROUTING']);
        await world.vpc.resetPacketLog();
        for (const protocol of ['tcp', 'udp'] as const) {
          const answer = await world.ask(client, protocol, host, NODE_PORT);
          t.is(
            answer,
            `${backend} ${world.outside(family)}`,
            `client kept, NodePort ${host} -> ${backend}, ${protocol}`,
          );
        }
        t.deepEqual(await world.waysOf(host, world.outside(family)), ['n1/eth0'], 'answers leave by the primary');
        await remove();
      }
    }
    for (const backend of ['a1', 'c1']) {
      const undoDnat = await dnat(n1.netns, family, `-d ${n1.primary[family]}`, world.pod(backend).ips[family], [
        'PREROUTING',
      ]);
      const undoMasquerade = await iptables(
        n1.netns,
        family,
        `POSTROUTING -d ${world.pod(backend).ips[family]} -j MASQUERADE`,
      );
      for (const protocol of ['tcp', 'udp'] as const) {
        const answer = await world.ask(client, protocol, n1.primary[family], NODE_PORT);
        t.regex(answer, new RegExp(`^${backend} `), `masqueraded NodePort -> ${backend}, ${protocol} IPv${family}`);
      }
      await undoMasquerade();
      await undoDnat();
    }
  }
  t.deepEqual(await world.vpc.droppedPackets(), []);
  await router.ip('route', 'del', `${EXTERNAL_IP}/32`);
}

async function nodePortsOfEnis(t: ExecutionContext, world: World): Promise<void> {
  const n1 = world.node('n1');
  for (const family of FAMILIES) {
    const own = n1.enis[0]?.addresses.find(({ ip }) => ip.includes(':') === (family === 6))?.ip ?? '';
    for (const backend of ['a1', 'b1']) {
      const remove = await dnat(n1.netns, family, `-d ${own}`, world.pod(backend).ips[family], ['PREROUTING']);
      await world.vpc.resetPacketLog();
      const answer = await world.ask(world.vpc.outside.netns, 'tcp', own, NODE_PORT);
      t.is(
        answer,
        `${backend} ${world.outside(family)}`,
        `NodePort on eni-a's own address -> ${backend}, IPv${family}`,
      );
      t.deepEqual(await world.waysOf(own), ['eni-a']);
      await remove();
    }
  }
}

async function bridgePods(t: ExecutionContext, world: World): Promise<void> {
  const n1 = world.node('n1');
  const { prefix, router } = world.vpc;
  const bridgePod = new NetnsView(`${prefix}gr`);
  await n1.netns.ip('netns', 'add', bridgePod.name);
  await n1.netns.ipBatch([
    'link add cbr0 type bridge',
    'address add 172.31.0.1/24 dev cbr0',
    'link set cbr0 up',
    `link add grhost type veth peer name eth0 netns ${bridgePod.name}`,
    'link set grhost master cbr0 up',
  ]);
  await bridgePod.ipBatch([
    'link set lo up',
    'link set eth0 up',
    'address add 172.31.0.7/24 dev eth0',
    'route add default via 172.31.0.1',
  ]);
  await router.ip('route', 'add', '172.31.0.0/24', 'via', n1.primary[4]);
  await world.serve(bridgePod, 'gr');
  await world.vpc.resetPacketLog();
  await each(world.pods, async (pod) => {
    t.true(await pod.netns.ping('172.31.0.7'), `${pod.name} -> bridge Pod`);
    t.true(await bridgePod.ping(pod.ips[4]), `bridge Pod -> ${pod.name}`);
  });
  t.true(await bridgePod.ping(world.outside(4)), 'bridge Pod -> outside');
  t.deepEqual(await world.waysOf('172.31.0.7', world.outside(4)), ['n1/eth0']);
  // On one node they meet directly; without rule 1024 the answers would go round by the VPC.
  t.deepEqual(await world.waysOf('172.31.0.7', world.pod('a1').ips[4]), []);
  t.deepEqual(await world.waysOf(world.pod('a1').ips[4], '172.31.0.7'), []);
  // A NodePort whose backend is a bridge Pod.
  const remove = await dnat(n1.netns, 4, `-d ${n1.primary[4]}`, '172.31.0.7', ['PREROUTING']);
  t.is(await world.ask(world.vpc.outside.netns, 'tcp', n1.primary[4], NODE_PORT), `gr ${world.outside(4)}`);
  await remove();
  t.deepEqual(await world.vpc.droppedPackets(), []);
  await n1.netns.ip('link', 'del', 'cbr0');
}

// Whoever marks before or after us keeps his bits, and we ours.
async function foreignMarks(t: ExecutionContext, world: World): Promise<void> {
  const n1 = world.node('n1');
  await n1.netns.nft(`table inet foreign {
    counter kept { }
    counter lost { }
    chain early { type filter hook prerouting priority raw; meta mark set 0xf0004001
    }
    chain late { type filter hook prerouting priority dstnat + 50; meta mark set meta mark or 0x8
    }
    chain forward { type filter hook forward priority filter;
      meta mark and 0xff00ffff == 0xf0004009 counter name kept accept
      counter name lost
    }
  }`);
  await world.vpc.resetPacketLog();
  for (const family of FAMILIES) {
    for (const name of ['a1', 'b1']) {
      t.true(await world.pod(name).netns.ping(world.outside(family)));
      t.deepEqual(await world.waysOf(world.pod(name).ips[family], world.outside(family)), [world.pod(name).eniId]);
    }
  }
  const counters = (await n1.netns.nftJson('counters', 'table', 'inet', 'foreign')) ?? [];
  const packets = Object.fromEntries(
    counters.flatMap((object) => {
      const counter = object['counter'] as { name: string; packets: number } | undefined;
      return counter === undefined ? [] : [[counter.name, counter.packets]];
    }),
  );
  t.is(packets['lost'], 0);
  t.true((packets['kept'] ?? 0) >= 8);
  await n1.netns.nft('delete table inet foreign');
}

async function recreatedVeth(t: ExecutionContext, world: World): Promise<void> {
  const pod = world.pod('b2');
  const listing = await pod.node.kernel.nft.read();
  await pod.node.unwire(pod);
  const { ifindex: _gone, ...hostVeth } = pod.network.hostVeth;
  pod.network = { ...pod.network, hostVeth };
  pod.node.wire(pod);
  t.is(await pod.node.kernel.nft.read(), listing, 'nftables knows nothing of Pods');
  for (const family of FAMILIES) t.true(await pod.netns.ping(world.outside(family)));
}

type Undo = () => Promise<void>;

async function dnat(
  netns: World['vpc']['router'],
  family: 4 | 6,
  match: string,
  backend: string,
  chains: readonly string[],
): Promise<Undo> {
  const target = family === 4 ? `${backend}:${WHO_PORT}` : `[${backend}]:${WHO_PORT}`;
  const undo: Undo[] = [];
  for (const chain of chains) {
    for (const protocol of ['tcp', 'udp']) {
      undo.push(
        await iptables(
          netns,
          family,
          `${chain} -p ${protocol} ${match} --dport ${NODE_PORT} -j DNAT --to-destination ${target}`,
        ),
      );
    }
  }
  return async () => {
    for (const step of undo) await step();
    // A port that is used again for another backend must not meet the old connection.
    await netns.tryRun(['conntrack', '-F']);
  };
}

async function iptables(netns: World['vpc']['router'], family: 4 | 6, rule: string): Promise<Undo> {
  const command = family === 4 ? 'iptables' : 'ip6tables';
  await netns.run([command, '-w', '-t', 'nat', '-A', ...rule.split(' ')]);
  return async () => {
    await netns.run([command, '-w', '-t', 'nat', '-D', ...rule.split(' ')]);
  };
}

async function each<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  await Promise.all(items.map(run));
}
