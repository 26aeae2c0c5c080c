import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { NetnsView } from '../../sim/support/netns.ts';
import { run } from '../../sim/support/run.ts';
import { listNetnsNames } from '../../sim/support/run-names.ts';
import type { AttachedEni } from '../../sim/vpc/nic.ts';
import { createTestVpc, type TestNode, type TestVpc, type TestVpcSpec } from '../../sim/vpc/vpc.ts';
import { createPodNetns, type PodNetns } from '../support/pod-netns.ts';
import { describeLoss, startTraffic } from '../support/traffic.ts';
import { waitUntil } from '../support/wait-until.ts';
import { setUpEniByHand, wirePodByHand } from '../support/wire-by-hand.ts';

const SPEC: TestVpcSpec = {
  vpcCidrs: ['10.0.0.0/16', 'fd00:10::/32'],
  subnets: [
    { id: 'subnet-a', cidr: '10.0.1.0/24', cidrV6: 'fd00:10:0:1::/64' },
    { id: 'subnet-b', cidr: '10.0.2.0/24', cidrV6: 'fd00:10:0:2::/64' },
  ],
  nodes: [
    { name: 'n1', primarySubnet: 'subnet-a' },
    { name: 'n2', primarySubnet: 'subnet-a' },
  ],
};

/** Long enough for an answer that comes, short enough to wait for one that must not. */
const REFUSED = { waitMs: 300 } as const;

/** Runs a test against a VPC of its own, which is gone afterwards, come what may. */
const withVpc = test.macro(async (t, body: (t: ExecutionContext, vpc: TestVpc) => Promise<void>) => {
  const vpc = await createTestVpc(SPEC);
  try {
    await body(t, vpc);
  } finally {
    await vpc.close();
  }
  const left = (await listNetnsNames()).filter((name) => name.startsWith(vpc.prefix));
  t.deepEqual(left, [], 'a namespace outlived its VPC');
});

type HandPod = { readonly node: TestNode; readonly eni: AttachedEni; readonly ip: string; readonly netns: PodNetns };

/** Attaches an ENI, sets it up with `ip` commands, and wires one Pod to one of its addresses. */
async function podOn(vpc: TestVpc, nodeName: string, subnetId: string, family: 4 | 6 = 4): Promise<HandPod> {
  const node = vpc.node(nodeName);
  const eniId = `${nodeName}-${subnetId}`;
  const eni = await vpc.attachEni(nodeName, { eniId, subnetId });
  await setUpEniByHand(node, eni);
  const ip = await vpc.assignIp(eniId, family);
  const netns = await createPodNetns(`${vpc.prefix}pod-${eniId}`);
  await wirePodByHand(node, eni, { netns, ip, hostVeth: `veth-${eni.ifname}` });
  return { node, eni, ip, netns };
}

test('createTestVpc: nodes reach each other and the outside when nothing else is set up', withVpc, async (t, vpc) => {
  const { netns } = vpc.node('n1');
  const { primary } = vpc.node('n2');
  t.true(await netns.ping(primary.primaryIp), 'the other node in the same subnet');
  t.true(await netns.ping(primary.primaryIpv6 ?? ''), 'the other node by IPv6');
  t.true(await netns.ping(vpc.outside.ip), 'the outside');
  t.true(await netns.ping(vpc.outside.ipv6), 'the outside by IPv6');
  t.deepEqual(await vpc.droppedPackets(), []);
});

test('createTestVpc: leaves no namespace behind when a node cannot be made', async (t) => {
  const nodes = [{ name: 'n1', primarySubnet: 'subnet-a', sysctls: { 'net/ipv4/no_such_key': 1 } }];
  await t.throwsAsync(createTestVpc({ ...SPEC, prefix: 'tke-test-bad-', nodes }), { message: /no_such_key/ });
  t.deepEqual(
    (await listNetnsNames()).filter((name) => name.startsWith('tke-test-bad-')),
    [],
  );
});

test('attachEni: the NIC appears as ethN with its MAC, down and without an address', withVpc, async (t, vpc) => {
  const eni = await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 'subnet-b', mtu: 8500 });
  t.is(eni.ifname, 'eth1');
  const [link] = await vpc.node('n1').netns.ipJson('address', 'show', 'dev', 'eth1');
  t.like(link, { address: eni.mac, operstate: 'DOWN', mtu: 8500, addr_info: [] });
});

test('assignIp: a Pod behind an ENI reaches the outside by that ENI, both families', withVpc, async (t, vpc) => {
  for (const [node, family, target] of [
    ['n1', 4, vpc.outside.ip],
    ['n2', 6, vpc.outside.ipv6],
  ] as const) {
    const pod = await podOn(vpc, node, 'subnet-b', family);
    await vpc.resetPacketLog();
    t.true(await pod.netns.ping(target), `IPv${family} Pod to ${target}`);
    const out = (await vpc.packetLog()).filter((way) => way.src === pod.ip);
    t.deepEqual(
      out.map((way) => [way.via, way.to, way.dst]),
      [[pod.eni.eniId, 'outside', target]],
    );
  }
});

test('assignIp: Pods on two nodes reach each other', withVpc, async (t, vpc) => {
  const a = await podOn(vpc, 'n1', 'subnet-b');
  const b = await podOn(vpc, 'n2', 'subnet-b');
  t.true(await a.netns.ping(b.ip));
  t.true(await b.netns.ping(a.ip));
});

test('router: drops a Pod that leaves by an ENI that is not its own', withVpc, async (t, vpc) => {
  const pod = await podOn(vpc, 'n1', 'subnet-b');
  // Without its rule the Pod leaves by eth0, which does not own the address.
  await pod.node.netns.ip('rule', 'delete', 'pref', '1536');
  t.false(await pod.netns.ping(vpc.outside.ip, REFUSED));
  const [drop] = await vpc.droppedPackets();
  t.like(drop, { via: 'n1/eth0', reason: 'source-address', src: pod.ip, dst: vpc.outside.ip });
});

test('router: drops an IPv6 source that is not routed to the port', withVpc, async (t, vpc) => {
  const pod = await podOn(vpc, 'n1', 'subnet-b', 6);
  await pod.node.netns.ip('-6', 'rule', 'delete', 'pref', '1536');
  t.false(await pod.netns.ping(vpc.outside.ipv6, REFUSED));
  const drops = await vpc.droppedPackets();
  t.true(drops.some((drop) => drop.via === 'n1/eth0' && drop.src === pod.ip));
});

test('router: drops a source MAC that is not the NIC of the port', withVpc, async (t, vpc) => {
  const { netns } = vpc.node('n1');
  await netns.ip('link', 'set', 'eth0', 'address', '02:00:00:00:00:99');
  // A permanent neighbour: ARP with the wrong MAC would get no answer either, and then no packet would leave.
  const gateway = vpc.node('n1').primary.gateway;
  await netns.ip('neigh', 'replace', gateway, 'lladdr', 'fe:ee:00:00:00:01', 'dev', 'eth0', 'nud', 'permanent');
  t.false(await netns.ping(vpc.outside.ip, REFUSED));
  t.true((await vpc.droppedPackets()).some((drop) => drop.reason === 'source-mac' && drop.src === '02:00:00:00:00:99'));
});

test('router: answers no ARP that names another NIC as its sender', withVpc, async (t, vpc) => {
  const { netns, primary } = vpc.node('n1');
  const eni = await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 'subnet-a' });
  // The ENI has no address of its own, so the kernel asks in the name of eth0.
  await netns.ipBatch([
    `link set ${eni.ifname} up`,
    `route add ${vpc.outside.ip}/32 via ${eni.gateway} dev eth1 onlink`,
  ]);
  t.false(await netns.ping(vpc.outside.ip, { ...REFUSED, from: primary.primaryIp }));
  const [neighbour] = await netns.ipJson('neigh', 'show', eni.gateway, 'dev', 'eth1');
  t.is(neighbour?.['lladdr'], undefined);
});

test('unassignIp: the address is led nowhere and is not handed out again at once', withVpc, async (t, vpc) => {
  const pod = await podOn(vpc, 'n1', 'subnet-b');
  await vpc.unassignIp(pod.eni.eniId, pod.ip);
  t.false(await pod.netns.ping(vpc.outside.ip, REFUSED));
  t.not(await vpc.assignIp(pod.eni.eniId), pod.ip);
});

test('replug: the same NIC comes back and leads its addresses when its link died', withVpc, async (t, vpc) => {
  const pod = await podOn(vpc, 'n1', 'subnet-b');
  t.deepEqual(await vpc.deadEnis('n1'), []);
  await pod.node.netns.ip('link', 'delete', pod.eni.ifname);
  t.deepEqual(await vpc.deadEnis('n1'), [pod.eni.eniId]);
  t.false(await pod.netns.ping(vpc.outside.ip, REFUSED));
  const again = await vpc.replug(pod.eni.eniId);
  t.is(again.mac, pod.eni.mac);
  t.deepEqual(await vpc.deadEnis('n1'), []);
  await setUpEniByHand(pod.node, again);
  t.true(await pod.netns.ping(vpc.outside.ip));
});

test('detachEni: the link is gone from the node and its addresses from the supply', withVpc, async (t, vpc) => {
  const eni = await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 'subnet-b' });
  t.true(vpc.nodeEniConfig('n1').includes(eni.mac));
  await vpc.detachEni('eni-1');
  const names = (await vpc.node('n1').netns.ipJson('link')).map((link) => link['ifname']);
  t.deepEqual(names, ['lo', 'eth0']);
  t.false(vpc.nodeEniConfig('n1').includes(eni.mac));
});

test(
  'closing a Pod’s namespace: its link is gone from the node, however late the kernel deletes it',
  withVpc,
  async (t, vpc) => {
    const { node, eni, netns } = await podOn(vpc, 'n1', 'subnet-a');
    // A process in it keeps the namespace, as the kernel’s own queue does on a busy machine.
    const holder = netns.start(['sleep', 'infinity']);
    const pids = (): Promise<string> => run(['ip', 'netns', 'pids', netns.name]);
    await waitUntil(async () => (await pids()).includes(`${holder.pid}`), { what: 'a process in the namespace' });
    let isClosed = false;
    const closing = netns.close().then(() => {
      isClosed = true;
    });
    await waitUntil(async () => !(await listNetnsNames()).includes(netns.name), { what: 'the name to go' });
    await sleep(200);
    t.false(isClosed, 'the link is still there');
    await holder.stop('SIGKILL');
    await closing;
    t.is((await node.netns.tryRun(['ip', 'link', 'show', 'dev', `veth-${eni.ifname}`])).code, 1);
  },
);

test('startTraffic: no number is lost on a healthy path', withVpc, async (t, vpc) => {
  const a = await podOn(vpc, 'n1', 'subnet-b');
  const b = await podOn(vpc, 'n2', 'subnet-b');
  const traffic = await startTraffic(a, b, { rate: 2_000 });
  await new Promise((resolve) => setTimeout(resolve, 500));
  const report = await traffic.finish();
  t.deepEqual(describeLoss(report), []);
  t.true(report.aToB.received > 0 && report.bToA.received > 0);
});

/** UDP datagrams that were sent from a namespace, by its kernel. */
async function datagramsOf(netns: NetnsView): Promise<number> {
  const rows = (await netns.run(['cat', '/proc/net/snmp'])).split('\n').filter((row) => row.startsWith('Udp:'));
  const [names = [], values = []] = rows.map((row) => row.split(' '));
  return Number(values[names.indexOf('OutDatagrams')]);
}

test('startTraffic: reports a hole when the path was broken for a moment', withVpc, async (t, vpc) => {
  const a = await podOn(vpc, 'n1', 'subnet-b');
  const b = await podOn(vpc, 'n2', 'subnet-b');
  const traffic = await startTraffic(a, b, { rate: 2_000 });
  await new Promise((resolve) => setTimeout(resolve, 200));
  await a.node.netns.ip('rule', 'delete', 'pref', '1536');
  // The sender may have to wait for a core.
  const before = await datagramsOf(a.netns);
  await waitUntil(async () => (await datagramsOf(a.netns)) > before + 10, { what: 'packets into the hole' });
  await a.node.netns.ip('rule', 'add', 'from', a.ip, 'lookup', '101', 'pref', '1536');
  await new Promise((resolve) => setTimeout(resolve, 200));
  const report = await traffic.finish();
  t.true(report.aToB.lost > 0, JSON.stringify(report.aToB));
  t.is(report.bToA.lost, 0, 'the other direction does not need the rule');
});
