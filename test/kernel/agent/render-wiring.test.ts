import test, { type ExecutionContext } from 'ava';
import { renderWiring } from '../../../agent/host/render-wiring.ts';
import type { NodeNetwork, PodNetwork } from '../../../dataplane/network.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { unwirePod } from '../../../dataplane/unwire-pod.ts';
import { wirePod } from '../../../dataplane/wire-pod.ts';
import { type IpOf, podOf, type TestNode, withTestNode } from '../dataplane/test-node.ts';

type Sandbox = ReturnType<TestNode['createPodNetns']>;

/**
 * Links, addresses, routes, neighbours and rules as `ip` shows them. Indexes are left out, since a new link has another one;
 * so is the carrier, which comes a moment after the link.
 */
function shown(ip: IpOf): unknown {
  const objects = (...args: readonly string[]) =>
    ip.json(...args).map(({ ifindex: _i, link_index: _l, link_netnsid: _n, flags, operstate: _o, ...rest }) => ({
      ...rest,
      isUp: Array.isArray(flags) && flags.includes('UP'),
    }));
  const addresses = ip.json('address', 'show').map(({ ifname, addr_info }) => [
    ifname,
    // The kernel makes the link-local addresses, from the MAC.
    (addr_info as readonly Record<string, unknown>[])
      .filter(({ scope }) => scope !== 'link')
      .map(({ local, prefixlen }) => [local, prefixlen]),
  ]);
  return {
    links: objects('-d', 'link', 'show', 'type', 'veth'),
    addresses,
    routes: [4, 6].map((family) => objects(`-${family}`, 'route', 'show', 'table', 'all', 'proto', '84')),
    neighs: objects('neigh', 'show', 'nud', 'permanent'),
    rules: [4, 6].map((family) => objects(`-${family}`, 'rule', 'show')),
  };
}

/** The settings of the Pod's link on both sides. */
function settings(node: TestNode, sandbox: Sandbox, pod: PodNetwork): string {
  const read = `cd /proc/sys/net; grep -rs . ipv4/conf/$0 ipv6/conf/$0 | grep -E 'rp_filter|accept_ra:|accept_dad|disable_ipv6|/forwarding' || true`;
  const inPod = ['nsenter', `--net=${sandbox.netns.path}`, 'sh', '-c', read, pod.podVeth.name] as const;
  return [node.run('sh', '-c', read, pod.hostVeth.name), node.run(...inPod)].join('\n');
}

async function assertSameByHand(
  t: ExecutionContext,
  node: TestNode,
  network: NodeNetwork,
  ips: readonly string[],
): Promise<void> {
  const [eni] = node.enis;
  if (eni === undefined) throw new Error('a test node has ENIs');
  const { fastPath, ...slow } = network;
  await node.reach(planNode(slow, node.enis, []));
  const sandbox = node.createPodNetns();
  const wanted = podOf(eni, ips, { filterPlace: fastPath !== undefined });
  const { hostIfindex, hostName, podIfindex } = wirePod(node.kernel, sandbox.netns, {
    ...{ node: network, pod: wanted, fallbackName: wanted.hostVeth.name },
  });
  const pod = { ...wanted, hostVeth: { ...wanted.hostVeth, name: hostName, ifindex: hostIfindex } };
  const look = () => ({
    host: shown(node.ip),
    pod: shown(sandbox.ip),
    settings: settings(node, sandbox, pod),
    disciplines: node.run('tc', 'qdisc', 'show'),
  });
  const made = look();
  const lines = renderWiring(network, pod, { netns: sandbox.netns.path, ifindex: podIfindex });

  await unwirePod(node.kernel, network, pod).finished;
  t.notDeepEqual(look(), made);
  node.run('sh', '-ec', lines.join('\n'));
  t.deepEqual(look(), made, lines.join('\n'));
}

test('renderWiring: its lines make the place of filters too, with the programs of the fast path', async (t) => {
  await withTestNode((node) => assertSameByHand(t, node, { ...node.network, fastPath: 'bpf' }, ['10.0.5.10']));
});

for (const ruleMode of ['compact', 'per-pod'] as const) {
  for (const ips of [['10.0.5.10'], ['10.0.5.10', 'fd00:10:0:5::10']]) {
    test(`renderWiring: its lines, typed in their order, make what wirePod makes, ${ruleMode}, ${ips.join(' ')}`, async (t) => {
      await withTestNode((node) => assertSameByHand(t, node, { ...node.network, ruleMode }, ips));
    });
  }
}
