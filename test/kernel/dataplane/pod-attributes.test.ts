import test, { type ExecutionContext } from 'ava';
import { applyOperations } from '../../../dataplane/apply.ts';
import type { HostState, PodState } from '../../../dataplane/desired.ts';
import { diffHost } from '../../../dataplane/diff.ts';
import { hostVethFallbackName } from '../../../dataplane/host-veth-name.ts';
import type { Kernel } from '../../../dataplane/kernel.ts';
import { observeNetns } from '../../../dataplane/observe.ts';
import { renderOperation } from '../../../dataplane/operation.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { planPod } from '../../../dataplane/plan-pod.ts';
import { wirePod } from '../../../dataplane/wire-pod.ts';
import { openRtnetlinkIn } from '../../../netlink/rtnetlink.ts';
import { openSysctl } from '../../../sysctl/sysctl.ts';
import { type IpOf, podOf, type TestNode, withTestNode } from './test-node.ts';

// What others give to objects inside a Pod, and to what the Pod's host interface has, one attribute at a time, by iproute2.

const POD_IPV4 = '10.0.5.10';
const POD_IPV6 = 'fd00:10:0:5::10';
const GATEWAY = '169.254.1.1 dev eth0';

/** `passes`: whether the Pod still sends and answers; default true. */
type Case = { readonly lines: readonly string[]; readonly passes?: boolean };

const IN_POD: Readonly<Record<string, Case>> = {
  'address, IPv4: it ends': { lines: [`address change ${POD_IPV4}/32 dev eth0 valid_lft 60 preferred_lft 30`] },
  'address, IPv4: scope host, no source for what the Pod sends': {
    lines: [`address del ${POD_IPV4}/32 dev eth0`, `address add ${POD_IPV4}/32 dev eth0 scope host`],
    passes: false,
  },
  'address, IPv4: gone': { lines: [`address del ${POD_IPV4}/32 dev eth0`], passes: false },
  'address, IPv6: it ends': {
    lines: [`-6 address change ${POD_IPV6}/128 dev eth0 valid_lft 60 preferred_lft 30 nodad noprefixroute`],
  },
  'address, IPv6: deprecated': {
    lines: [`-6 address change ${POD_IPV6}/128 dev eth0 preferred_lft 0 nodad noprefixroute`],
  },
  'neighbour: stale': { lines: [`neigh change ${GATEWAY} nud stale`] },
  'neighbour: noarp': { lines: [`neigh change ${GATEWAY} nud noarp`] },
  'neighbour: another MAC': {
    lines: [`neigh change ${GATEWAY} lladdr 02:00:00:00:00:99 nud permanent`],
    passes: false,
  },
  'neighbour, IPv6: gone': { lines: ['-6 neigh del fe80::1 dev eth0'] },
  'route: an attribute': { lines: ['route change default via 169.254.1.1 dev eth0 proto 84 mtu lock 600'] },
};

/** What the kernel takes of others and packets do not depend on: docs/kernel-state.md has the reasons. */
const HARMLESS: readonly string[] = [
  `neigh change ${GATEWAY} nud permanent protocol 9`,
  `neigh change ${GATEWAY} nud permanent extern_learn`,
  '-6 neigh change fe80::1 dev eth0 nud permanent router',
  '-6 neigh change fe80::1 dev eth0 nud permanent',
];

async function withPod(run: (scene: Scene) => Promise<void>): Promise<void> {
  await withTestNode(async (node) => {
    const [eni] = node.enis;
    if (eni === undefined) throw new Error('a test node has ENIs');
    await node.reach(planNode(node.network, node.enis, []));
    const sandbox = node.createPodNetns();
    const pod = podOf(eni, [POD_IPV4, POD_IPV6]);
    const fallbackName = hostVethFallbackName(pod.key);
    const wired = wirePod(node.kernel, sandbox.netns, { node: node.network, pod, fallbackName });
    const ofLink = { ...pod, hostVeth: { ...pod.hostVeth, name: wired.hostName, ifindex: wired.hostIfindex } };
    const plan = planPod(node.network, ofLink, wired.podIfindex);
    using rtnetlink = openRtnetlinkIn(sandbox.netns);
    const kernel = { rtnetlink, sysctl: openSysctl(sandbox.netns), nft: node.kernel.nft };
    const { nft: _nft, ...host } = planNode(node.network, node.enis, [ofLink]);
    await run({ node, hostVeth: wired.hostName, sandbox, kernel, plan, host });
  });
}

type Scene = {
  readonly node: TestNode;
  readonly hostVeth: string;
  readonly sandbox: ReturnType<TestNode['createPodNetns']>;
  /** The Pod's. */
  readonly kernel: Kernel;
  readonly plan: { readonly pod: PodState };
  /** Of the whole node, without nftables. */
  readonly host: HostState;
};

function answers({ node }: Scene, ip: string): boolean {
  try {
    return node.run('ping', '-c1', '-W1', ip).includes(' 0% packet loss');
  } catch {
    return false;
  }
}

/** The Pod sends with the address that the kernel chooses. */
function sends({ sandbox }: Scene): boolean {
  return sandbox.ip('route', 'get', '192.0.2.1').includes(`src ${POD_IPV4}`);
}

async function mend(t: ExecutionContext, kernel: Kernel, desired: HostState, what: string): Promise<void> {
  const { operations } = diffHost(desired, observeNetns(kernel, desired));
  t.not(operations.length, 0, `${what}: not seen`);
  await applyOperations(kernel, operations);
  t.deepEqual(diffHost(desired, observeNetns(kernel, desired)).operations.map(renderOperation), [], what);
}

test('diffHost: finds what others gave to what a Pod has inside, and takes it away', async (t) => {
  await withPod(async (scene) => {
    const { sandbox, kernel, plan } = scene;
    const planned = insideOf(sandbox.ip);
    for (const [what, { lines, passes = true }] of Object.entries(IN_POD)) {
      for (const line of lines) sandbox.ip(...line.split(' '));
      t.is(answers(scene, POD_IPV4) && sends(scene), passes, `${what}: packets`);
      await mend(t, kernel, plan.pod, what);
      t.deepEqual(insideOf(sandbox.ip), planned, what);
      t.true(answers(scene, POD_IPV4) && answers(scene, POD_IPV6) && sends(scene), `${what}: packets pass after it`);
    }
  });
});

test('diffHost: what others gave to a neighbour that stops nothing is left alone', async (t) => {
  await withPod(async (scene) => {
    const { sandbox, kernel, plan } = scene;
    for (const line of HARMLESS) {
      sandbox.ip(...line.split(' '));
      t.true(answers(scene, POD_IPV4) && answers(scene, POD_IPV6), line);
      t.deepEqual(diffHost(plan.pod, observeNetns(kernel, plan.pod)).operations, [], line);
    }
  });
});

test('diffHost: a link of IPv6 Pods that lost its link-local address gets one', async (t) => {
  await withPod(async (scene) => {
    const { node, hostVeth, host } = scene;
    t.true(answers(scene, POD_IPV6));
    for (const dev of [hostVeth, 'eth5']) {
      node.ip('link', 'set', 'dev', dev, 'addrgenmode', 'none');
      node.ip('-6', 'address', 'flush', 'dev', dev, 'scope', 'link');
      t.is(node.ip('-6', 'address', 'show', 'dev', dev, 'scope', 'link'), '');
      await mend(t, node.kernel, host, dev);
      t.regex(node.ip('-6', 'address', 'show', 'dev', dev, 'scope', 'link'), /inet6 fe80:[^/]+\/64/);
      t.regex(node.ip('-6', 'route', 'show', 'dev', dev), /^fe80::\/64/m, 'it leads to neighbours');
      node.ip('-6', 'neigh', 'flush', 'dev', dev);
    }
    // From an address of another link, as what the node forwards.
    t.regex(node.run('ping', '-c1', '-W2', '-I', 'fd00:10::2', POD_IPV6), / 0% packet loss/);
  });
});

/** Addresses, routes and neighbours in a Pod; learned neighbours come and go. */
function insideOf(ip: IpOf): unknown {
  return ['-4', '-6'].map((family) => [
    ip.json('-d', family, 'address', 'show', 'dev', 'eth0', 'scope', 'global'),
    ip.json('-d', family, 'route', 'show', 'table', 'main', 'proto', '84'),
    ip
      .json('-d', family, 'neigh', 'show', 'dev', 'eth0', 'nud', 'permanent')
      .map(({ dst, lladdr }) => ({ dst, lladdr })),
  ]);
}
