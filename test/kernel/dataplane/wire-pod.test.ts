import test from 'ava';
import { checkPod } from '../../../dataplane/check-pod.ts';
import { hostVethFallbackName } from '../../../dataplane/host-veth-name.ts';
import type { EniPodNetwork, NodeNetwork, PodNetwork } from '../../../dataplane/network.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { unwirePod } from '../../../dataplane/unwire-pod.ts';
import { isWireError } from '../../../dataplane/wire-error.ts';
import { type WiredPod, wirePod } from '../../../dataplane/wire-pod.ts';
import { deleteNetns, type Netns } from '../../../netlink/netns.ts';
import { PacketSocket } from '../../support/packet-socket.ts';
import { podOf, type TestNode, withTestNode } from './test-node.ts';

const families = [
  { name: 'IPv4', ips: ['10.0.5.10'] },
  { name: 'IPv6', ips: ['fd00:10:0:5::10'] },
  { name: 'dual stack', ips: ['10.0.5.10', 'fd00:10:0:5::10'] },
];

function firstEni({ enis }: TestNode): TestNode['enis'][number] {
  const [eni] = enis;
  if (eni === undefined) throw new Error('a test node has ENIs');
  return eni;
}

function wire(
  node: TestNode,
  netns: Netns,
  pod: PodNetwork,
  network: NodeNetwork = node.network,
): PodNetwork & { readonly wired: WiredPod } {
  const wired = wirePod(node.kernel, netns, { node: network, pod, fallbackName: hostVethFallbackName(pod.key) });
  return { ...pod, hostVeth: { ...pod.hostVeth, name: wired.hostName, ifindex: wired.hostIfindex }, wired };
}

test('wirePod: with the programs of the fast path the link has the place of its filters, where no other plugin needs it', async (t) => {
  await withTestNode(async (node) => {
    const fast = { ...node.network, fastPath: 'bpf' } as const;
    const placeOf = (network: NodeNetwork, more: Partial<EniPodNetwork>): readonly unknown[] => {
      const ip = `10.0.5.${10 + made++}`;
      const pod = wire(node, node.createPodNetns().netns, podOf(firstEni(node), [ip], more), network);
      t.regex(node.run('ping', '-c1', '-W2', ip), / 0% packet loss/);
      const [link] = node.ip.json('-d', 'link', 'show', pod.hostVeth.name);
      t.like(link, { group: '4025', ifalias: pod.alias, operstate: 'UP' });
      const list: readonly { readonly kind: string }[] = JSON.parse(
        node.run('tc', '-j', 'qdisc', 'show', 'dev', pod.hostVeth.name),
      );
      return list.map(({ kind }) => kind);
    };
    let made = 0;
    await node.reach(planNode(node.network, node.enis, []));
    t.deepEqual(placeOf(fast, { filterPlace: true }), ['noqueue', 'clsact']);
    t.deepEqual(placeOf(fast, {}), ['noqueue']);
    t.deepEqual(placeOf(node.network, { filterPlace: true }), ['noqueue']);
  });
});

for (const ruleMode of ['compact', 'per-pod'] as const) {
  for (const { name, ips } of families) {
    test(`wirePod: a ${name} Pod talks to the node, passes CHECK and leaves nothing behind, in ${ruleMode} mode`, async (t) => {
      await withTestNode(async (node) => {
        const network = { ...node.network, ruleMode };
        const desired = planNode(network, node.enis, []);
        await node.reach(desired);
        const clean = `${node.ip('rule', 'show')}\n${node.ip('-6', 'rule', 'show')}`;
        const sandbox = node.createPodNetns();
        const pod = wire(node, sandbox.netns, podOf(firstEni(node), ips), network);

        const check = { node: network, pod, ...(desired.nft && { nft: desired.nft }) };
        t.deepEqual(await checkPod(node.kernel, sandbox.netns, check), []);
        t.deepEqual(await node.reach(planNode(network, node.enis, [pod])), []);
        for (const ip of ips) t.regex(node.run('ping', '-c1', '-W2', ip), / 0% packet loss/);
        const [link] = node.ip.json('-d', 'link', 'show', pod.hostVeth.name);
        t.is(link?.['group'], '4025');
        t.is(link?.['ifalias'], pod.alias);
        t.is(link?.['mtu'], 1400);
        t.is(node.ip('-4', 'address', 'show', 'dev', pod.hostVeth.name), '');
        t.is(sandbox.ip.json('link', 'show', 'eth0')[0]?.['address'], pod.podVeth.mac);
        t.is(sandbox.ip.json('link', 'show', 'eth0')[0]?.['ifindex'], pod.wired.podIfindex);

        const { hadLink, finished } = unwirePod(node.kernel, network, pod);
        t.true(hadLink);
        // Before the link goes, nothing leads to it any more.
        for (const family of ['-4', '-6']) {
          const routes = node.ip(family, 'route', 'show', 'table', 'all', 'proto', '84');
          t.false(routes.includes(`dev ${pod.hostVeth.name} `));
          for (const ip of ips) t.false(routes.includes(`${ip} `));
        }
        await finished;
        t.is(`${node.ip('rule', 'show')}\n${node.ip('-6', 'rule', 'show')}`, clean);
        t.throws(() => node.ip('link', 'show', pod.hostVeth.name));
        t.throws(() => sandbox.ip('link', 'show', 'eth0'));
        const again = unwirePod(node.kernel, network, pod);
        t.false(again.hadLink);
        await again.finished;
      });
    });
  }
}

test('wirePod: what the Pod sees is its address, the gateway that nobody owns, and a permanent neighbour', async (t) => {
  await withTestNode((node) => {
    const sandbox = node.createPodNetns();
    const pod = wire(node, sandbox.netns, podOf(firstEni(node), ['10.0.5.10', 'fd00:10:0:5::10']));
    t.is(
      sandbox.ip('route', 'show'),
      'default via 169.254.1.1 dev eth0 proto 84 \n169.254.1.1 dev eth0 proto 84 scope link',
    );
    t.regex(sandbox.ip('-6', 'route', 'show', 'default'), /^default via fe80::1 dev eth0 proto 84 /);
    t.deepEqual(
      sandbox.ip.json('neigh', 'show').map(({ dst, lladdr, state }) => ({ dst, lladdr, state })),
      ['169.254.1.1', 'fe80::1'].map((dst) => ({ dst, lladdr: pod.hostVeth.mac, state: ['PERMANENT'] })),
    );
    t.regex(sandbox.ip('address', 'show', 'dev', 'eth0'), /inet 10\.0\.5\.10\/32 /);
    t.notRegex(sandbox.ip('-6', 'address', 'show', 'dev', 'eth0'), /fd00[^\n]*tentative/);
  });
});

test('wirePod: IFNAME_TAKEN names the interface and leaves it alone', async (t) => {
  await withTestNode((node) => {
    const sandbox = node.createPodNetns();
    sandbox.ip('link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'other');
    const pod = podOf(firstEni(node), ['10.0.5.10']);
    const error = t.throws(() => wire(node, sandbox.netns, pod));
    t.true(isWireError(error, 'IFNAME_TAKEN'));
    t.is(
      error?.message,
      `the sandbox ${pod.key.containerId} already has an interface eth0 that is not ours; choose another CNI_IFNAME or delete it`,
    );
    t.deepEqual(
      node.ip
        .json('link', 'show', 'type', 'veth')
        .map(({ ifname }) => ifname)
        .sort(),
      ['eth0', 'eth5', 'eth6'],
    );
    t.is(sandbox.ip.json('link', 'show', 'type', 'veth').length, 2);
  });
});

test('wirePod: takes the fallback name when another sandbox of the same Pod lives under the wanted one', async (t) => {
  await withTestNode((node) => {
    const hostName = 'eni00000000001';
    const make = (ip: string) => {
      const pod = podOf(firstEni(node), [ip]);
      return { ...pod, hostVeth: { ...pod.hostVeth, name: hostName } };
    };
    const first = wire(node, node.createPodNetns().netns, make('10.0.5.10'));
    const second = wire(node, node.createPodNetns().netns, make('10.0.5.11'));
    t.is(first.wired.hostName, hostName);
    t.is(second.wired.hostName, hostVethFallbackName(second.key));
    t.is(node.ip.json('link', 'show', hostName)[0]?.['ifalias'], first.alias);
  });
});

test('wirePod: replaces its own leftover, with or without an alias, under whatever name', async (t) => {
  await withTestNode((node) => {
    const sandbox = node.createPodNetns();
    const pod = podOf(firstEni(node), ['10.0.5.10']);
    const first = wire(node, sandbox.netns, pod);
    const second = wire(node, sandbox.netns, pod);
    t.not(second.wired.hostIfindex, first.wired.hostIfindex);
    // As a crash between the two requests leaves it: no alias, our MAC.
    node.ip('link', 'set', pod.hostVeth.name, 'alias', '');
    t.is(wire(node, sandbox.netns, pod).wired.hostName, pod.hostVeth.name);
    t.is(node.ip.json('link', 'show', 'group', '4025').length, 1);
  });
});

test('wirePod: takes back all it did when the host side cannot be made', async (t) => {
  await withTestNode((node) => {
    const sandbox = node.createPodNetns();
    node.ip('link', 'set', 'eth5', 'up');
    node.ip('route', 'add', '10.0.5.10', 'dev', 'eth5', 'proto', 'static');
    const before = node.ip('rule', 'show');
    const network = { ...node.network, ruleMode: 'per-pod' as const };
    const pod = podOf(firstEni(node), ['10.0.5.10']);
    const error = t.throws(() => wire(node, sandbox.netns, pod, network));
    t.true(isWireError(error, 'ROUTE_TAKEN'));
    t.regex(
      error?.message ?? '',
      /^cannot add "10\.0\.5\.10\/32 dev eni[0-9a-f]{11} proto 84 scope link": a route for 10\.0\.5\.10\/32 of protocol 4 stands there/,
    );
    t.is(node.ip('rule', 'show'), before);
    t.is(node.ip('route', 'show', '10.0.5.10'), '10.0.5.10 dev eth5 proto static scope link');
    t.deepEqual(sandbox.ip.json('link', 'show', 'type', 'veth'), []);
  });
});

test('unwirePod: works when the namespace of the Pod is gone, and twice at once', async (t) => {
  await withTestNode(async (node) => {
    const network = { ...node.network, ruleMode: 'per-pod' as const };
    const sandbox = node.createPodNetns();
    const pod = wire(node, sandbox.netns, podOf(firstEni(node), ['10.0.5.10']), network);
    sandbox.netns.close();
    deleteNetns(sandbox.name);
    await Promise.all(
      [unwirePod(node.kernel, network, pod), unwirePod(node.kernel, network, pod)].map(({ finished }) => finished),
    );
    t.notRegex(node.ip('rule', 'show'), /10\.0\.5\.10/);
  });
});

test('unwirePod: leaves a link alone that got the number of the old one, and its route', async (t) => {
  await withTestNode(async (node) => {
    const old = podOf(firstEni(node), ['10.0.5.10']);
    const sandbox = node.createPodNetns();
    const living = wire(node, sandbox.netns, podOf(firstEni(node), ['10.0.5.10']));
    const stale = { ...old, hostVeth: { ...old.hostVeth, ifindex: living.wired.hostIfindex } };
    const { hadLink, finished } = unwirePod(node.kernel, node.network, stale);
    await finished;
    t.false(hadLink);
    t.deepEqual(await checkPod(node.kernel, sandbox.netns, { node: node.network, pod: living }), []);
  });
});

test('unwirePod: finds the link of an attachment whose lease knows no index', async (t) => {
  await withTestNode(async (node) => {
    const pod = podOf(firstEni(node), ['10.0.5.10']);
    wire(node, node.createPodNetns().netns, pod);
    const { hadLink, finished } = unwirePod(node.kernel, node.network, pod);
    await finished;
    t.true(hadLink);
    t.deepEqual(node.ip.json('link', 'show', 'group', '4025'), []);
  });
});

const differences = test.macro(
  async (
    t,
    damage: (node: TestNode, pod: PodNetwork, sandbox: ReturnType<TestNode['createPodNetns']>) => void,
    expected: RegExp,
  ) => {
    await withTestNode(async (node) => {
      const desired = planNode(node.network, node.enis, []);
      await node.reach(desired);
      const sandbox = node.createPodNetns();
      const pod = wire(node, sandbox.netns, podOf(firstEni(node), ['10.0.5.10', 'fd00:10:0:5::10']));
      damage(node, pod, sandbox);
      const found = await checkPod(node.kernel, sandbox.netns, {
        node: node.network,
        pod,
        ...(desired.nft && { nft: desired.nft }),
      });
      t.is(found.length, 1);
      t.regex(found.join('\n'), expected);
    });
  },
);

test(
  'checkPod: reports a missing host route',
  differences,
  (node, pod) => {
    node.ip('route', 'del', '10.0.5.10', 'dev', pod.hostVeth.name, 'table', '3999');
  },
  /^host: route "10\.0\.5\.10\/32 dev eni\w+ table 3999 proto 84 scope link" is missing$/,
);
test(
  'checkPod: reports a changed MTU',
  differences,
  (node, pod) => {
    node.ip('link', 'set', pod.hostVeth.name, 'mtu', '1300');
  },
  /^host: link eni\w+: mtu is 1300, should be 1400$/,
);
test(
  'checkPod: reports a changed group',
  differences,
  (node, pod) => {
    node.ip('link', 'set', 'dev', pod.hostVeth.name, 'group', '9');
  },
  /^host: link eni\w+: group is 9, should be 4025$/,
);
test(
  'checkPod: reports a changed sysctl',
  differences,
  (node, pod) => {
    node.run('sh', '-c', `echo 0 > /proc/sys/net/ipv4/conf/${pod.hostVeth.name}/rp_filter`);
  },
  /^host: sysctl net\.ipv4\.conf\.eni\w+\.rp_filter is 0, should be 1$/,
);
test(
  'checkPod: reports an IPv4 address on the host veth',
  differences,
  (node, pod) => {
    node.ip('address', 'add', '192.0.2.1/32', 'dev', pod.hostVeth.name);
  },
  /^host: eni\w+ has the IPv4 address 192\.0\.2\.1\/32: its Pod could forge sources/,
);
test(
  'checkPod: reports a missing element of the nftables map',
  differences,
  (node) => {
    node.run('nft', 'flush', 'ruleset');
  },
  /^host: nftables table inet tke_eni is missing$/,
);
test(
  'checkPod: reports a missing address in the Pod',
  differences,
  (_node, _pod, sandbox) => {
    sandbox.ip('-6', 'address', 'del', 'fd00:10:0:5::10/128', 'dev', 'eth0');
  },
  /^Pod: address fd00:10:0:5::10\/128 is missing on eth0$/,
);
test(
  'checkPod: reports a changed default route in the Pod',
  differences,
  (_node, _pod, sandbox) => {
    sandbox.ip('-6', 'route', 'del', 'default');
  },
  /^Pod: route "::\/0|^Pod: route "default via fe80::1 dev eth0 proto 84" is missing$/,
);
test(
  'checkPod: reports a neighbour that is no longer permanent',
  differences,
  (_node, _pod, sandbox) => {
    sandbox.ip('neigh', 'replace', '169.254.1.1', 'lladdr', '02:00:00:00:00:99', 'dev', 'eth0', 'nud', 'permanent');
  },
  /^Pod: neighbour 169\.254\.1\.1 on eth0 is 02:00:00:00:00:99, should be 02:/,
);
test(
  'checkPod: reports a missing interface in the Pod',
  differences,
  (_node, _pod, sandbox) => {
    sandbox.ip('link', 'set', 'eth0', 'down');
    sandbox.ip('link', 'set', 'eth0', 'name', 'gone');
  },
  /^Pod: interface eth0 is missing$/,
);

test('checkPod: of a Pod whose sandbox took addresses and routes out, compares the host and the link', async (t) => {
  await withTestNode(async (node) => {
    await node.reach(planNode(node.network, node.enis, []));
    const sandbox = node.createPodNetns();
    const pod = wire(node, sandbox.netns, podOf(firstEni(node), ['10.0.5.10', 'fd00:10:0:5::10']));
    const checkWith = (handler: string | undefined) =>
      checkPod(node.kernel, sandbox.netns, { node: node.network, pod, handler: async () => handler });
    sandbox.ip('address', 'flush', 'dev', 'eth0');
    sandbox.ip('-6', 'route', 'flush', 'dev', 'eth0');
    t.deepEqual(await checkWith('runsc'), []);
    for (const handler of [undefined, 'runc']) t.true((await checkWith(handler)).length >= 4, handler);
    {
      const [link] = sandbox.ip.json('link', 'show', 'eth0');
      using _reader = new PacketSocket(sandbox.netns, Number(link?.['ifindex']));
      t.deepEqual(await checkWith(undefined), [], 'its packets are read');
      t.true((await checkWith('runc')).length >= 4, 'a flush while somebody reads');
    }
    sandbox.ip('link', 'set', 'eth0', 'mtu', '1300');
    node.ip('route', 'del', '10.0.5.10', 'dev', pod.hostVeth.name, 'table', '3999');
    const found = await checkWith('runsc');
    t.is(found.length, 2);
    t.regex(
      found.join('\n'),
      /^host: route "10\.0\.5\.10\/32 .*" is missing\nPod: link eth0: mtu is 1300, should be 1400$/,
    );
  });
});
