import test, { type ExecutionContext } from 'ava';
import { openUplinksScene, type UplinksScene } from './support/uplinks-scene.ts';

// A node on which Cilium wires the Pods, in IPAM mode crd: the agent has ENIs, tables and rules, and no Pods.

const FAMILIES = [4, 6] as const;

test.serial(
  'uplinks: Pods of cilium-cni leave by the ENI of their address, and what others undo is repaired',
  async (t) => {
    const scene = await openUplinksScene();
    try {
      await allReachAll(t, scene);
      await refusesPods(t, scene);
      await repairs(t, scene);
      await addressesComeAndGo(t, scene);
      t.deepEqual(await scene.vpc.droppedPackets(), [], 'each packet left by the NIC that has its source');
      t.deepEqual(await scene.vpc.repeatedPackets(), [], 'no packet passed the VPC twice');
    } finally {
      await scene.close();
    }
  },
);

async function allReachAll(t: ExecutionContext, scene: UplinksScene): Promise<void> {
  const { vpc, pods, nodes } = scene;
  await vpc.resetPacketLog();
  for (const family of FAMILIES) {
    const outside = family === 4 ? vpc.outside.ip : vpc.outside.ipv6;
    await Promise.all(
      pods.map(async (from) => {
        const what = `${from.name} IPv${family}`;
        for (const to of pods) if (to !== from) t.true(await from.netns.ping(to.ips[family]), `${what} -> ${to.name}`);
        t.true(await from.netns.ping(outside), `${what} -> outside`);
        t.true(await vpc.outside.netns.ping(from.ips[family]), `outside -> ${what}`);
        for (const node of nodes) t.true(await node.netns.ping(from.ips[family]), `${node.name} -> ${what}`);
      }),
    );
    for (const { name, ips, eniId } of pods) {
      t.deepEqual(await scene.waysOf(ips[family]), [eniId], `${name} leaves by the ENI of its address alone`);
    }
    const [a, b] = [scene.pod('a'), scene.pod('b')];
    t.deepEqual(await scene.waysOf(a.ips[family], b.ips[family]), [], 'Pods of one node meet on the node');
  }
}

async function refusesPods(t: ExecutionContext, { nodes }: UplinksScene): Promise<void> {
  const [node] = nodes;
  if (node === undefined) throw new Error('the scene has nodes');
  const pod = await node.newPod();
  const before = await node.netns.ipJson('link');
  const add = await node.call('ADD', pod);
  t.is(add.exitCode, 1);
  t.regex(add.stdout, /runs with --role=uplinks/);
  t.regex(add.stdout, /cilium-cni/);
  t.deepEqual(await node.netns.ipJson('link'), before, 'nothing was made');
  const del = await node.call('DEL', pod);
  t.is(del.exitCode, 0, del.stdout);
}

async function repairs(t: ExecutionContext, scene: UplinksScene): Promise<void> {
  const [a, node] = [scene.pod('a'), scene.node('n1')];
  const [eni] = node.enis;
  if (eni === undefined) throw new Error('the node has ENIs');
  const { vpc } = scene;
  await node.netns.ip('rule', 'flush', 'protocol', '84');
  await node.netns.ip('-6', 'rule', 'flush', 'protocol', '84');
  await scene.settle(node);
  t.true(await a.netns.ping(vpc.outside.ip), 'after the rules were flushed');
  t.true(await a.netns.ping(vpc.outside.ipv6), 'after the rules were flushed, IPv6');
  await node.netns.ip('address', 'del', `${eni.primaryIp}/32`, 'dev', eni.ifname);
  await scene.settle(node);
  t.true(await a.netns.ping(vpc.outside.ip), 'after the address of the ENI was removed');
  // What the test took away may have left by another NIC.
  await vpc.resetPacketLog();
}

async function addressesComeAndGo(t: ExecutionContext, scene: UplinksScene): Promise<void> {
  const { vpc } = scene;
  const node = scene.node('n1');
  const { ip, ipv6 } = await vpc.assignDual('eni-1');
  node.writeSupply();
  await scene.settle(node);
  const late = await scene.addPod('late', 'eni-1', { 4: ip, 6: ipv6 });
  t.true(await late.netns.ping(vpc.outside.ip), 'an address that came meanwhile');
  t.true(await scene.pod('b').netns.ping(ip));
  vpc.announceRelease('eni-1', ip);
  node.writeSupply();
  await scene.settle(node);
  t.true(await late.netns.ping(vpc.outside.ip), 'one that is being released is routed still');
  await node.netns.ip('link', 'del', late.lxc);
  await vpc.unassignIp('eni-1', ip);
  await vpc.unassignIp('eni-1', ipv6);
  node.writeSupply();
  await scene.settle(node);
  t.deepEqual(await node.tracesOf(ip), [], 'one that left has no rule');
  t.deepEqual(await node.tracesOf(ipv6), []);
}
