import { execFileSync } from 'node:child_process';
import test from 'ava';
import { bridgePodMac } from '../../../dataplane/bridge-pod-mac.ts';
import { checkPod } from '../../../dataplane/check-pod.ts';
import { hostVethAlias } from '../../../dataplane/host-veth-name.ts';
import type { BridgePodNetwork, NodeNetwork } from '../../../dataplane/network.ts';
import { BRIDGE_IFINDEX } from '../../../dataplane/numbers.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { decideBridgeRemoval } from '../../../dataplane/remove-bridge.ts';
import { unwirePod } from '../../../dataplane/unwire-pod.ts';
import { isWireError } from '../../../dataplane/wire-error.ts';
import { longTest, partOf, shortTest } from '../../support/suite-part.ts';
import { A, B, BLOCK, ENI_POD, FORMER, grPod, networkOf, pings, serve, threePods, VIP, wire } from './bridge-scene.ts';
import { type TestNode, withTestNode } from './test-node.ts';

const combinations = (['compact', 'per-pod'] as const).flatMap((ruleMode) =>
  (['bridge', 'routed'] as const).map((wiring) => ({ ruleMode, wiring })),
);

/** Each layout and each wiring once; the other pairs are tried in the suite `long`. */
const isShort = ({ ruleMode, wiring }: (typeof combinations)[number]): boolean =>
  (ruleMode === 'compact') === (wiring === 'bridge');

for (const { ruleMode, wiring } of partOf(combinations, isShort)) {
  test.serial(
    `wirePod: GlobalRoute Pods, a Pod of an ENI and the node reach each other; ${ruleMode}, ${wiring}`,
    async (t) => {
      await withTestNode(async (node) => {
        await node.reach(planNode(networkOf(node, wiring, { ruleMode }), node.enis, []));
        t.deepEqual(
          await node.reach(planNode(networkOf(node, wiring, { ruleMode }), node.enis, [])),
          [],
          'one pass makes all',
        );
        const before = rulesAndRoutes(node);
        const { network, a, b, ofEni, plan } = await threePods(node, ruleMode, wiring);

        t.deepEqual(await node.reach(plan()), [], 'repair finds nothing to do');
        for (const { pod, sandbox } of [a, b, ofEni]) {
          const { nft } = plan();
          t.deepEqual(await checkPod(node.kernel, sandbox.netns, { node: network, pod, ...(nft && { nft }) }), []);
        }
        for (const [from, to] of [
          [a.sandbox, B],
          [b.sandbox, A],
          [a.sandbox, ENI_POD],
          [ofEni.sandbox, A],
          [node, A],
          [node, ENI_POD],
        ] as const) {
          t.true(pings(from, to), `to ${to}`);
        }
        // No Pod has this address: the packet is refused here, on the bridge after three unanswered questions.
        if (wiring === 'bridge') node.run('sysctl', '-qw', 'net.ipv4.neigh.cbr0.retrans_time_ms=100');
        t.regex(unanswered(ofEni.sandbox, '172.31.0.99'), /Unreachable/);

        for (const { pod } of [a, b, ofEni]) await unwirePod(node.kernel, network, pod).finished;
        t.deepEqual(rulesAndRoutes(node), before);
        t.is(node.ip.json('link', 'show', 'type', 'veth').length, 3, 'the links of eth0, eth5 and eth6');
      });
    },
  );

  test.serial(
    `wirePod: a Service is reached by its own Pod and by another, each packet once; ${ruleMode}, ${wiring}`,
    async (t) => {
      await withTestNode(async (node) => {
        const { a, b, ofEni } = await threePods(node, ruleMode, wiring);
        serve(node, A);
        t.true(pings(b.sandbox, VIP), 'another Pod');
        t.true(pings(a.sandbox, VIP), 'the Pod itself');
        t.true(pings(ofEni.sandbox, VIP), 'a Pod of an ENI');
      });
    },
  );
}

/** A bridge without ports has no carrier. */
function rulesAndRoutes(node: TestNode): readonly string[] {
  const routes = node.ip('route', 'show', 'table', 'all', 'proto', '84').replaceAll(' linkdown', '');
  return [node.ip('rule', 'show'), routes];
}

function unanswered(from: { readonly name: string }, to: string): string {
  try {
    return execFileSync('ip', ['netns', 'exec', from.name, 'ping', '-n', '-c1', '-W4', to], { encoding: 'utf8' });
  } catch (error) {
    return error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
  }
}

type Scene = Awaited<ReturnType<typeof threePods>>;

const harm = test.macro(
  async (
    t,
    damage: (node: TestNode, scene: Scene) => void,
    stops: (node: TestNode, scene: Scene) => boolean,
    lines: number,
  ) => {
    await withTestNode(async (node) => {
      const scene = await threePods(node, 'per-pod', 'bridge');
      serve(node, A);
      t.true(stops(node, scene), 'packets pass before');
      damage(node, scene);
      t.false(stops(node, scene), 'no packet passes');
      const startedMs = performance.now();
      const done = await node.reach(scene.plan());
      t.log(`repaired in ${(performance.now() - startedMs).toFixed(1)} ms: ${done.join('; ')}`);
      t.is(done.length, lines);
      t.true(stops(node, scene), 'packets pass again');
      t.deepEqual(await node.reach(scene.plan()), []);
    });
  },
);
const toOther = (_node: TestNode, { a }: Scene) => pings(a.sandbox, B);
const toItself = (_node: TestNode, { a }: Scene) => pings(a.sandbox, VIP);
const toService = (_node: TestNode, { b }: Scene) => pings(b.sandbox, VIP);
const fromNode = (node: TestNode) => pings(node, A);
const fromEniPod = (_node: TestNode, { ofEni }: Scene) => pings(ofEni.sandbox, A);

longTest.serial(
  'repair: the address of the bridge',
  harm,
  (node) => node.ip('address', 'flush', 'dev', 'cbr0'),
  fromNode,
  2,
);
longTest.serial(
  'repair: a port out of the bridge',
  harm,
  (node, { a }) => node.ip('link', 'set', a.pod.hostVeth.name, 'nomaster'),
  toOther,
  2,
);
shortTest.serial(
  'repair: hairpin of a port',
  harm,
  (node, { a }) => node.ip('link', 'set', a.pod.hostVeth.name, 'type', 'bridge_slave', 'hairpin', 'off'),
  toItself,
  1,
);
for (const words of ['isolated on', 'bcast_flood off', 'proxy_arp on'])
  longTest.serial(
    `repair: ${words} of a port`,
    harm,
    (node: TestNode, { a, b }: Scene) => {
      for (const { pod, sandbox } of [a, b]) {
        node.ip('link', 'set', pod.hostVeth.name, 'type', 'bridge_slave', ...words.split(' '));
        // What is known of neighbours hides it for a while.
        sandbox.ip('neigh', 'flush', 'dev', 'eth0');
      }
    },
    toOther,
    2,
  );
shortTest.serial('repair: rule 1024', harm, (node) => node.ip('rule', 'del', 'pref', '1024'), fromEniPod, 1);
longTest.serial(
  'repair: bridge-nf-call-iptables',
  harm,
  (node) => node.run('sysctl', '-qw', 'net.bridge.bridge-nf-call-iptables=0'),
  toService,
  1,
);
longTest.serial('repair: the bridge down', harm, (node) => node.ip('link', 'set', 'cbr0', 'down'), toOther, 2);
shortTest.serial('repair: the bridge deleted', harm, (node) => node.ip('link', 'del', 'cbr0'), toOther, 11);
longTest.serial(
  'repair: a route to the bridge that is refused',
  harm,
  (node) => node.ip('route', 'add', 'unreachable', A, 'proto', '84'),
  fromNode,
  1,
);

shortTest.serial(
  'planBridge: a block is still led to the bridge when the route that its address made is deleted',
  async (t) => {
    await withTestNode(async (node) => {
      const { plan } = await threePods(node, 'compact', 'bridge');
      node.ip('route', 'del', BLOCK.cidr, 'dev', 'cbr0', 'proto', 'kernel');
      t.true(pings(node, A));
      t.deepEqual(await node.reach(plan()), []);
    });
  },
);

shortTest.serial(
  'bridgePodMac: the next Pod of an address is reached at once by those that knew its predecessor',
  async (t) => {
    await withTestNode(async (node) => {
      const { network, a, b } = await threePods(node, 'compact', 'bridge');
      t.true(pings(b.sandbox, A));
      const follow = async (before: BridgePodNetwork, mac: (pod: BridgePodNetwork) => string) => {
        await unwirePod(node.kernel, network, before).finished;
        const pod = grPod(A, 'bridge');
        return wire(node, network, { ...pod, podVeth: { ...pod.podVeth, mac: mac(pod) } });
      };
      const random = await follow(a.pod, ({ podVeth }) => podVeth.mac);
      t.false(pings(b.sandbox, A), 'with a random MAC');
      b.sandbox.ip('neigh', 'flush', 'dev', 'eth0');
      const fixed = await follow(random.pod, () => bridgePodMac(A));
      b.sandbox.ip('neigh', 'flush', 'dev', 'eth0');
      t.true(pings(b.sandbox, A));
      await follow(fixed.pod, () => bridgePodMac(A));
      t.true(pings(b.sandbox, A));
    });
  },
);

shortTest.serial('wirePod: BRIDGE_MISSING when the bridge is gone, and nothing is left behind', async (t) => {
  await withTestNode(async (node) => {
    const network = networkOf(node, 'bridge');
    const error = t.throws(() => wire(node, network, grPod(A, 'bridge')));
    t.true(isWireError(error, 'BRIDGE_MISSING'));
    t.deepEqual(
      node.ip
        .json('link', 'show', 'type', 'veth')
        .map(({ ifname }) => ifname)
        .sort(),
      ['eth0', 'eth5', 'eth6'],
    );
  });
});

shortTest.serial(
  'wirePod: what a Pod on the bridge has is its address with the length of the block, and the bridge as its gateway',
  async (t) => {
    await withTestNode(async (node) => {
      const { a } = await threePods(node, 'compact', 'bridge');
      t.regex(a.sandbox.ip('address', 'show', 'dev', 'eth0'), /inet 172\.31\.0\.70\/26 /);
      t.is(
        a.sandbox.ip('route', 'show'),
        'default via 172.31.0.65 dev eth0 proto 84 \n172.31.0.64/26 dev eth0 proto kernel scope link src 172.31.0.70',
      );
      t.deepEqual(a.sandbox.ip.json('neigh', 'show', 'nud', 'permanent'), []);
      t.notRegex(a.sandbox.ip('-6', 'address', 'show', 'dev', 'eth0'), /tentative|dadfailed/);
      const [link] = node.ip.json('-d', 'link', 'show', a.pod.hostVeth.name);
      t.like(link, { master: 'cbr0', group: 'default', ifalias: hostVethAlias(a.pod.key) });
      t.like(link?.['linkinfo'], { info_slave_data: { hairpin: true } });
      const [cbr0] = node.ip.json('-d', 'link', 'show', 'cbr0');
      t.like(cbr0, {
        ifindex: BRIDGE_IFINDEX,
        address: '0a:58:00:00:00:01',
        ifalias: 'tke-eni-bridge',
        promiscuity: 0,
      });
    });
  },
);

shortTest.serial('checkPod: reports a port without hairpin', async (t) => {
  await withTestNode(async (node) => {
    const { network, a } = await threePods(node, 'compact', 'bridge');
    node.ip('link', 'set', a.pod.hostVeth.name, 'type', 'bridge_slave', 'hairpin', 'off');
    t.deepEqual(await checkPod(node.kernel, a.sandbox.netns, { node: network, pod: a.pod }), [
      `host: link ${a.pod.hostVeth.name}: hairpin is false, should be true`,
    ]);
  });
});

shortTest.serial(
  'planBridge: the bridge of another program is used as it is, its ports get hairpin before it leaves promiscuous mode',
  async (t) => {
    await withTestNode(async (node) => {
      node.ip('link', 'add', 'cbr0', 'address', '0a:58:ac:1f:00:41', 'type', 'bridge');
      node.ip('link', 'set', 'cbr0', 'promisc', 'on', 'up');
      node.ip('address', 'add', '172.31.0.65/26', 'dev', 'cbr0');
      const network = networkOf(node, 'bridge');
      const a = wire(node, network, grPod(A, 'bridge'));
      node.ip('link', 'set', a.pod.hostVeth.name, 'type', 'bridge_slave', 'hairpin', 'off');
      const lines = await node.reach(planNode(network, [], [a.pod]));
      const ofLinks = lines.filter((line) => line.startsWith('ip link'));
      t.deepEqual(ofLinks.slice(-2), [
        `ip link set dev ${a.pod.hostVeth.name} type bridge_slave hairpin on`,
        'ip link set dev cbr0 promisc off',
      ]);
      t.true(pings(node, A));
      t.is(node.ip.json('link', 'show', 'cbr0')[0]?.['address'], '0a:58:ac:1f:00:41');
      t.deepEqual(decideBridgeRemoval(node.kernel.rtnetlink.link.list(), 'cbr0'), {
        kind: 'keep',
        why: 'cbr0 was made by another program',
      });
    });
  },
);

shortTest.serial(
  'planBridge: a former block works until its last Pod ends; then its gateway and its rule go',
  async (t) => {
    await withTestNode(async (node) => {
      const former = { ...FORMER, isCurrent: true };
      const first = { podCidrs: [former] };
      await node.reach(planNode(networkOf(node, 'bridge', first), [], []));
      const old = wire(node, networkOf(node, 'bridge', first), grPod('172.31.7.9', 'bridge', former));
      const both = { podCidrs: [BLOCK, FORMER] };
      await node.reach(planNode(networkOf(node, 'bridge', both), [], [old.pod]));
      const young = wire(node, networkOf(node, 'bridge', both), grPod(A, 'bridge'));
      t.true(pings(old.sandbox, A));
      t.true(pings(young.sandbox, '172.31.7.9'));
      t.true(pings(node, '172.31.7.9'));
      await unwirePod(node.kernel, networkOf(node, 'bridge', both), old.pod).finished;
      const lines = await node.reach({ ...planNode(networkOf(node, 'bridge'), [], [young.pod]) });
      t.deepEqual(
        lines.filter((line) => !line.startsWith('nft ')),
        [
          'ip address del 172.31.7.1/26 dev cbr0',
          'ip -4 rule del pref 1024 to 172.31.7.0/26 lookup main proto 84',
          'ip route del unreachable 172.31.7.0/26 proto 84 metric 2147483647',
        ],
      );
      t.true(pings(young.sandbox, BLOCK.gateway));
    });
  },
);

shortTest.serial(
  'planNode: Pods stay as they were wired when the wiring changes, and both kinds reach each other',
  async (t) => {
    await withTestNode(async (node) => {
      await node.reach(planNode(networkOf(node, 'bridge'), [], []));
      const a = wire(node, networkOf(node, 'bridge'), grPod(A, 'bridge'));
      await node.reach(planNode(networkOf(node, 'routed'), [], [a.pod]));
      const b = wire(node, networkOf(node, 'routed'), grPod(B, 'routed'));
      const pods = [a.pod, b.pod];
      t.deepEqual(await node.reach(planNode(networkOf(node, 'routed'), [], pods)), []);
      t.true(pings(node, A));
      t.true(pings(node, B));
      t.true(pings(b.sandbox, A));
    });
  },
);

shortTest.serial(
  'nftTable: packets to where the VPC has no route back leave with the address of the node, others with their own',
  async (t) => {
    await withTestNode(async (node) => {
      const bridge = { masquerade: { exempt: ['10.0.0.0/8'] } } as unknown as NonNullable<NodeNetwork['bridge']>;
      const network = () => networkOf(node, 'bridge', { bridge });
      await node.reach(planNode(network(), [], []));
      const a = wire(node, network(), grPod(A, 'bridge'));
      t.deepEqual(await node.reach(planNode(network(), [], [a.pod])), []);
      // Outside: an address behind the router, which has no route to the block.
      node.far.ip('address', 'add', '10.0.0.1/24', 'dev', 'far0');
      node.far.ip('link', 'set', 'lo', 'up');
      node.far.ip('address', 'add', '203.0.113.7/32', 'dev', 'lo');
      t.true(pings(a.sandbox, '203.0.113.7'));
      t.false(pings(a.sandbox, '10.0.0.1'), 'with its own address');
      node.far.ip('route', 'add', BLOCK.cidr, 'via', '10.0.0.2');
      t.true(pings(a.sandbox, '10.0.0.1'));
    });
  },
);

shortTest.serial('decideBridgeRemoval: our bridge goes when it has no port', async (t) => {
  await withTestNode(async (node) => {
    const { a, b } = await threePods(node, 'compact', 'bridge');
    const decide = () => decideBridgeRemoval(node.kernel.rtnetlink.link.list(), 'cbr0');
    t.is(decide().kind, 'keep');
    for (const { pod } of [a, b]) await unwirePod(node.kernel, networkOf(node, 'bridge'), pod).finished;
    t.is(decide().kind, 'delete');
  });
});
