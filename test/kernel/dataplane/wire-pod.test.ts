import test from 'ava';
import { checkPod } from '../../../dataplane/check-pod.ts';
import { hostVethFallbackName } from '../../../dataplane/host-veth-name.ts';
import type { EniPodNetwork, NodeNetwork, PodNetwork } from '../../../dataplane/network.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { unwirePod } from '../../../dataplane/unwire-pod.ts';
import { type WiredPod, wirePod } from '../../../dataplane/wire-pod.ts';
import type { Netns } from '../../../netlink/netns.ts';
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
