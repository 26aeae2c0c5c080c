import test from 'ava';
import { checkExclusivePod } from '../../../dataplane/check-exclusive-pod.ts';
import { hostVethFallbackName, nicAlias, sideName } from '../../../dataplane/host-veth-name.ts';
import type { EniPodNetwork, NodeNetwork } from '../../../dataplane/network.ts';
import { DIRECT_LINK_GROUP } from '../../../dataplane/numbers.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { isWireError } from '../../../dataplane/wire-error.ts';
import { unwireExclusivePod, updateExclusiveRoutes, wireExclusivePod } from '../../../dataplane/wire-exclusive-pod.ts';
import { deleteNetns, type Netns } from '../../../netlink/netns.ts';
import { podOf, type TestNode, withTestNode } from './test-node.ts';

/** The node's second ENI, as a whole. */
function directPodOf(node: TestNode, more: Partial<EniPodNetwork> = {}): EniPodNetwork {
  const [, eni] = node.enis;
  if (eni === undefined) throw new Error('a test node has two ENIs');
  const pod = podOf(
    eni,
    eni.addresses.map(({ ip }) => ip),
  );
  return {
    ...pod,
    kind: 'direct-eni',
    eniTable: DIRECT_LINK_GROUP,
    podVeth: { ...pod.podVeth, name: sideName('eth0') },
    nic: {
      mac: eni.mac,
      hostName: eni.ifname,
      mtu: 1500,
      addresses: eni.addresses.map(({ ip, gateway }) => ({ ip, gateway, prefixLength: ip.includes(':') ? 64 : 24 })),
    },
    ...more,
  };
}

const networkOf = (node: TestNode, ruleMode: NodeNetwork['ruleMode']): NodeNetwork => ({
  ...node.network,
  ruleMode,
  hasDirect: true,
  serviceCidrs: ['10.96.0.0/12'],
});

function wire(node: TestNode, podNetns: Netns, network: NodeNetwork, pod: EniPodNetwork): EniPodNetwork {
  const fallbackName = hostVethFallbackName(pod.key);
  const wired = wireExclusivePod(node.kernel, node.netns, podNetns, { node: network, pod, fallbackName });
  return { ...pod, hostVeth: { ...pod.hostVeth, name: wired.hostName, ifindex: wired.hostIfindex } };
}

/** What tells that nothing of a Pod is left, and that the ENI's interface rests as it did. */
function traces(node: TestNode): unknown {
  return {
    links: node.ip
      .json('-d', 'link', 'show')
      .map(({ ifname, address, mtu, flags, ifalias, group }) => ({ ifname, address, mtu, flags, ifalias, group })),
    addresses: node.ip('-br', 'address', 'show', 'scope', 'global'),
    routes: [4, 6].map((family) => node.ip(`-${family}`, 'route', 'show', 'table', 'all', 'proto', '84')),
    rules: [4, 6].map((family) => node.ip(`-${family}`, 'rule', 'show')),
  };
}

for (const ruleMode of ['compact', 'per-pod'] as const) {
  test(`wireExclusivePod: the Pod has the ENI's interface, talks to the node, and gives it back, in ${ruleMode} mode`, async (t) => {
    await withTestNode(async (node) => {
      const network = networkOf(node, ruleMode);
      const [shared] = node.enis;
      const enis = shared === undefined ? [] : [shared];
      await node.reach(planNode(network, enis, []));
      const before = traces(node);
      const sandbox = node.createPodNetns();
      const pod = wire(node, sandbox.netns, network, directPodOf(node));

      const desired = planNode(network, enis, [pod]);
      t.deepEqual(await node.reach(desired), [], 'repair finds nothing to do');
      const check = { node: network, pod, ...(desired.nft && { nft: desired.nft }) };
      t.deepEqual(await checkExclusivePod(node.kernel, sandbox.netns, check), []);
      const [nic] = sandbox.ip.json('link', 'show', 'eth0');
      t.is(nic?.['address'], pod.nic?.mac);
      t.is(nic?.['ifalias'], nicAlias(pod.key, 'eth6'));
      t.is(nic?.['mtu'], 1400);
      t.throws(() => node.ip('link', 'show', 'eth6'), undefined, 'it is in one namespace only');
      const dev = (args: readonly string[]) => sandbox.ip.json(...args).map(({ dev }) => dev)[0];
      t.is(dev(['route', 'get', '10.0.0.2']), 'veth0', 'the node');
      t.is(dev(['route', 'get', '10.96.0.1']), 'veth0', 'a Service');
      t.is(dev(['route', 'get', '169.254.0.23']), 'veth0', 'link-local');
      t.is(dev(['route', 'get', '10.0.6.9']), 'eth0', 'its subnet');
      t.is(dev(['route', 'get', '8.8.8.8']), 'eth0', 'the rest');
      t.is(sandbox.ip.json('route', 'get', '10.96.0.1')[0]?.['prefsrc'], '10.0.6.5');
      t.is(sandbox.ip.json('-6', 'route', 'get', 'fd00:10::2')[0]?.['dev'], 'veth0');
      for (const ip of pod.ips) t.regex(node.run('ping', '-c1', '-W2', ip), / 0% packet loss/);

      const unwired = unwireExclusivePod(node.kernel, network, pod, { hostNetns: node.netns, podNetns: sandbox.netns });
      await unwired.finished;
      t.is(unwired.nic, 'back');
      t.deepEqual(traces(node), before);
      t.deepEqual(
        sandbox.ip.json('link', 'show').map(({ ifname }) => ifname),
        ['lo'],
      );
      const again = unwireExclusivePod(node.kernel, network, pod, { hostNetns: node.netns, podNetns: sandbox.netns });
      await again.finished;
      t.is(again.nic, 'back');
      t.deepEqual(traces(node), before);
    });
  });
}

test('unwireExclusivePod: what the Pod changed of its interface does not come back with it', async (t) => {
  await withTestNode(async (node) => {
    const network = networkOf(node, 'compact');
    const shown = () => [
      traces(node),
      node.ip('-d', 'link', 'show', 'eth6'),
      node.run('tc', 'qdisc', 'show', 'dev', 'eth6'),
    ];
    const before = shown();
    const sandbox = node.createPodNetns();
    const pod = wire(node, sandbox.netns, network, directPodOf(node));
    // The name that the interface would have for a moment.
    sandbox.ip('link', 'add', `enx${pod.nic?.mac.replaceAll(':', '')}`, 'type', 'bridge');
    const set = (...args: readonly string[]) => sandbox.ip('link', 'set', 'eth0', ...args);
    set('arp', 'off', 'promisc', 'on', 'group', '7', 'mtu', '576', 'txqlen', '1', 'alias', 'tke-eni-nic/c/eth0/cbr0');
    set('broadcast', '02:00:00:00:00:02');
    node.run('tc', '-n', sandbox.name, 'qdisc', 'add', 'dev', 'eth0', 'root', 'pfifo', 'limit', '1');
    const ends = { hostNetns: node.netns, podNetns: sandbox.netns };
    const unwired = unwireExclusivePod(node.kernel, network, pod, ends);
    await unwired.finished;
    t.is(unwired.nic, 'back');
    t.deepEqual(shown(), before);
  });
});

test('checkExclusivePod: names every difference that somebody made', async (t) => {
  await withTestNode(async (node) => {
    const network = networkOf(node, 'compact');
    const sandbox = node.createPodNetns();
    const pod = wire(node, sandbox.netns, network, directPodOf(node));
    const found = () => checkExclusivePod(node.kernel, sandbox.netns, { node: network, pod });
    t.deepEqual(await found(), []);
    const changes: readonly (readonly [() => unknown, () => unknown, RegExp])[] = [
      [
        () => sandbox.ip('address', 'del', '10.0.6.5/24', 'dev', 'eth0'),
        () => {
          sandbox.ip('address', 'add', '10.0.6.5/24', 'dev', 'eth0');
          sandbox.ip('route', 'add', 'default', 'via', '10.0.6.1', 'proto', '84');
          for (const to of ['10.0.0.2', '169.254.0.0/16', '10.96.0.0/12', '172.31.0.0/24'])
            sandbox.ip(
              'route',
              'replace',
              to,
              'via',
              '169.254.1.1',
              'dev',
              'veth0',
              'src',
              '10.0.6.5',
              'proto',
              '84',
              'onlink',
            );
        },
        /address 10\.0\.6\.5\/24 is missing on eth0/,
      ],
      [
        () => sandbox.ip('neigh', 'del', '169.254.1.1', 'dev', 'veth0'),
        () =>
          sandbox.ip('neigh', 'replace', '169.254.1.1', 'dev', 'veth0', 'lladdr', pod.hostVeth.mac, 'nud', 'permanent'),
        /neighbour 169\.254\.1\.1 on veth0 is missing/,
      ],
      [
        () => node.ip('route', 'del', '10.0.6.5', 'table', '3999'),
        () =>
          node.ip(
            'route',
            'add',
            '10.0.6.5',
            'dev',
            pod.hostVeth.name,
            'table',
            '3999',
            'proto',
            '84',
            'scope',
            'link',
            'src',
            '10.0.0.2',
          ),
        /route "10\.0\.6\.5\/32 dev .* is missing/,
      ],
      [
        () => sandbox.ip('link', 'set', 'eth0', 'alias', 'mine'),
        () => sandbox.ip('link', 'set', 'eth0', 'alias', nicAlias(pod.key, 'eth6')),
        /alias of eth0 is mine/,
      ],
      [
        () => sandbox.ip('link', 'set', 'veth0', 'mtu', '1300'),
        () => sandbox.ip('link', 'set', 'veth0', 'mtu', '1400'),
        /link veth0: mtu is 1300/,
      ],
    ];
    for (const [change, mend, expected] of changes) {
      change();
      t.regex((await found()).join('\n'), expected);
      mend();
    }
    sandbox.ip('link', 'set', 'eth0', 'down');
    t.regex((await found()).join('\n'), /link eth0: up is false, should be true/);
    sandbox.ip('link', 'set', 'eth0', 'name', 'other0');
    t.regex((await found()).join('\n'), /name of the ENI's interface is other0, should be eth0/);
    sandbox.ip('link', 'set', 'other0', 'netns', node.name);
    t.regex((await found()).join('\n'), /the ENI's interface .* is missing/);
    sandbox.ip('link', 'del', 'veth0');
    t.regex((await found()).join('\n'), /Pod: interface veth0 is missing/);
  });
});

test('updateExclusiveRoutes: a living Pod follows the ranges of Services and the addresses of the node, and nothing else', async (t) => {
  await withTestNode(async (node) => {
    const network = networkOf(node, 'compact');
    const sandbox = node.createPodNetns();
    const pod = wire(node, sandbox.netns, network, directPodOf(node));
    const update = (to: NodeNetwork) => updateExclusiveRoutes(node.kernel, sandbox.netns, to, pod);
    const devTo = (ip: string) => sandbox.ip.json('route', 'get', ip)[0]?.['dev'];
    t.deepEqual(await update(network), []);
    sandbox.ip('route', 'add', '192.0.2.0/24', 'via', '10.0.6.1', 'dev', 'eth0');
    sandbox.ip('neigh', 'del', '169.254.1.1', 'dev', 'veth0');

    const wider: NodeNetwork = { ...network, serviceCidrs: ['10.96.0.0/12', '10.200.0.0/16', 'fd01::/108'] };
    const added = await update(wider);
    t.is(added.length, 2, added.join('\n'));
    t.deepEqual(await update(wider), []);
    t.deepEqual(['10.200.0.1', '10.96.0.1', 'fd01::1', '8.8.8.8'].map(devTo), ['veth0', 'veth0', 'veth0', 'eth0']);
    t.is(sandbox.ip.json('route', 'get', '10.200.0.1')[0]?.['prefsrc'], '10.0.6.5');
    const left = await checkExclusivePod(node.kernel, sandbox.netns, { node: wider, pod });
    t.regex(left.join('\n'), /^Pod: neighbour 169\.254\.1\.1 on veth0 is missing[^\n]*$/);

    const moved: NodeNetwork = {
      ...network,
      serviceCidrs: ['10.200.0.0/16'],
      primary: { ...network.primary, addresses: ['10.0.0.77'] },
    };
    t.true((await update(moved)).length > 0);
    t.deepEqual(['10.200.0.1', '10.96.0.1', '10.0.0.77', '192.0.2.1'].map(devTo), ['veth0', 'eth0', 'veth0', 'eth0']);
    t.is(sandbox.ip('route', 'show', '192.0.2.0/24').trim(), '192.0.2.0/24 via 10.0.6.1 dev eth0');
    sandbox.ip('link', 'del', 'veth0');
    t.deepEqual(await update(network), [], 'a Pod without its second link has no routes to follow');
  });
});

test('wireExclusivePod: takes all back, the interface too, when the Pod has such an interface already', async (t) => {
  await withTestNode(async (node) => {
    const network = networkOf(node, 'compact');
    for (const ifname of ['eth0', 'veth0']) {
      const before = traces(node);
      const sandbox = node.createPodNetns();
      sandbox.ip('link', 'add', ifname, 'type', 'veth', 'peer', 'name', 'other');
      const error = t.throws(() => wire(node, sandbox.netns, network, directPodOf(node)));
      t.true(isWireError(error, 'IFNAME_TAKEN'), String(error));
      t.deepEqual(traces(node), before, ifname);
    }
  });
});

test('wireExclusivePod: says that the interface is missing, and leaves nothing', async (t) => {
  await withTestNode((node) => {
    const network = networkOf(node, 'compact');
    node.ip('link', 'del', 'eth6');
    const before = traces(node);
    const sandbox = node.createPodNetns();
    const error = t.throws(() => wire(node, sandbox.netns, network, directPodOf(node)));
    t.true(isWireError(error, 'NIC_MISSING'), String(error));
    t.deepEqual(traces(node), before);
  });
});

test('unwireExclusivePod: an interface whose name is taken by now gets one of its own', async (t) => {
  await withTestNode(async (node) => {
    const network = networkOf(node, 'compact');
    const sandbox = node.createPodNetns();
    const pod = wire(node, sandbox.netns, network, directPodOf(node));
    node.ip('link', 'set', 'eth5', 'name', 'eth6');
    const { nic, finished } = unwireExclusivePod(node.kernel, network, pod, {
      hostNetns: node.netns,
      podNetns: sandbox.netns,
    });
    await finished;
    t.is(nic, 'back');
    const [found] = node.ip.json('link').filter(({ address }) => address === pod.nic?.mac);
    t.is(found?.['ifname'], `enx${pod.nic?.mac.replaceAll(':', '')}`);
    t.notRegex(JSON.stringify(found), /"UP"/);
  });
});

test('unwireExclusivePod: without the namespace everything of the node goes, and the interface is told to be missing', async (t) => {
  await withTestNode(async (node) => {
    const network = networkOf(node, 'compact');
    const sandbox = node.createPodNetns();
    const pod = wire(node, sandbox.netns, network, directPodOf(node));
    sandbox.netns.close();
    deleteNetns(sandbox.name);
    const { nic, finished } = unwireExclusivePod(node.kernel, network, pod, {
      hostNetns: node.netns,
      podNetns: undefined,
    });
    await finished;
    // A veth stands for the ENI's interface here, and dies with its namespace.
    t.is(nic, 'missing');
    t.deepEqual(
      node.ip.json('link').filter(({ ifname }) => String(ifname).startsWith('eni')),
      [],
    );
    t.is(node.ip('route', 'show', 'table', '3999'), '');
  });
});

test('checkExclusivePod, updateExclusiveRoutes: leave alone what a sandbox took out, and not what a flush took', async (t) => {
  await withTestNode(async (node) => {
    const network = networkOf(node, 'compact');
    const sandbox = node.createPodNetns();
    const pod = wire(node, sandbox.netns, network, directPodOf(node));
    sandbox.ip('address', 'flush', 'dev', 'eth0');
    const wider: NodeNetwork = { ...network, serviceCidrs: ['10.96.0.0/12', '10.200.0.0/16'] };
    const handler = async () => 'runsc';
    t.deepEqual(await checkExclusivePod(node.kernel, sandbox.netns, { node: network, pod, handler }), []);
    t.deepEqual(await updateExclusiveRoutes(node.kernel, sandbox.netns, wider, pod, handler), []);
    const found = await checkExclusivePod(node.kernel, sandbox.netns, { node: network, pod });
    t.regex(found.join('\n'), /^Pod: address 10\.0\.6\.5\/24 is missing on eth0$/m);
  });
});
