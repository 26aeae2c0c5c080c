import test, { type ExecutionContext } from 'ava';
import { callInTime } from '../support/call-in-time.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openScenes, type Scene } from './support/scene.ts';
import type { AttachedPod, SceneNode } from './support/scene-node.ts';

// eni-1 has room for two Pods, so the third goes to eni-2; eni-3 is in the primary's own subnet.
const NODES = [
  {
    name: 'n1',
    enis: [
      { eniId: 'eni-1', ips: 2 },
      { eniId: 'eni-2', ips: 2 },
    ],
  },
  { name: 'n2', enis: [{ eniId: 'eni-3', subnetId: 'subnet-a', ips: 2 }] },
] as const;

const SCENES = [
  { key: 'compact IPv4', ruleMode: 'compact', isDual: false },
  { key: 'compact dual stack', ruleMode: 'compact', isDual: true },
  { key: 'per-pod dual stack', ruleMode: 'per-pod', isDual: true },
] as const;

const scenes = openScenes(
  test,
  SCENES.map((scene) => ({ ...scene, nodes: NODES })),
);

type Pods = { readonly a: AttachedPod; readonly b: AttachedPod; readonly c: AttachedPod; readonly d: AttachedPod };

/** Pods a and b on eni-1, c on eni-2, d on the other node. */
async function fourPods(t: ExecutionContext, { nodes, vpc }: Scene): Promise<Pods> {
  const [n1, n2] = nodes as readonly [SceneNode, SceneNode];
  const a = await n1.addPod();
  const b = await n1.addPod();
  const c = await n1.addPod();
  const d = await n2.addPod();
  const enis = [a, b, c, d].map((pod) => vpc.eniOf(pod.ip));
  t.deepEqual(enis, ['eni-1', 'eni-1', 'eni-2', 'eni-3'], 'the fullest ENI is filled first');
  return { a, b, c, d };
}

for (const { key, isDual } of SCENES) {
  test.serial(`packets: flow between Pods, nodes and the outside by the right ENI, ${key}`, async (t) => {
    const scene = scenes.get(key);
    const { vpc, nodes } = scene;
    const [n1, n2] = nodes as readonly [SceneNode, SceneNode];
    const pods = await fourPods(t, scene);
    await scenes.verify(t, key);
    for (const family of isDual ? [0, 1] : [0]) {
      const ipOf = (pod: AttachedPod): string => pod.ips[family] ?? 'no address of this family';
      const outside = family === 0 ? vpc.outside.ip : vpc.outside.ipv6;
      const primary = (node: SceneNode): string => {
        const { primaryIp, primaryIpv6 } = vpc.node(node.name).primary;
        return (family === 0 ? primaryIp : primaryIpv6) ?? 'no address of this family';
      };
      await vpc.resetPacketLog();
      const all = Object.entries(pods);
      for (const [from, pod] of all) {
        for (const [to, other] of all.filter(([name]) => name !== from)) {
          t.true(await pod.netns.ping(ipOf(other)), `${from} -> ${to}`);
        }
        t.true(await pod.netns.ping(outside), `${from} -> outside`);
        t.true(await pod.netns.ping(primary(pod.node)), `${from} -> its node`);
        t.true(await pod.node.netns.ping(ipOf(pod)), `its node -> ${from}`);
        t.true(await vpc.outside.netns.ping(ipOf(pod)), `outside -> ${from}`);
      }
      t.true(await pods.a.netns.ping(primary(n2)), 'a -> the other node');
      t.true(await n2.netns.ping(ipOf(pods.c)), 'the other node -> c');
      t.true(await n1.netns.ping(ipOf(pods.d)), 'n1 -> d');

      t.deepEqual(await vpc.droppedPackets(), [], 'the VPC refused nothing');
      const log = await vpc.packetLog();
      for (const [name, pod] of all) {
        const ways = log.filter((way) => way.src === ipOf(pod) && way.dst === outside);
        t.deepEqual([...new Set(ways.map((way) => way.via))], [vpc.eniOf(ipOf(pod))], `${name} leaves by its own ENI`);
      }
    }
    await Promise.all([n1.delete(pods.a, pods.b, pods.c), n2.delete(pods.d)]);
    await scenes.verify(t, key);
    for (const pod of Object.values(pods)) t.deepEqual(await pod.netns.linkNames(), ['lo']);
  });

  test.serial(`packets: a Pod cannot use an address that is not its own, ${key}`, async (t) => {
    const { vpc, node } = scenes.get(key);
    const pod = await node.addPod();
    const [forged, forgedIpv6] = ['10.0.2.250', 'fd00:10:0:2::bad'];
    await pod.netns.ip('address', 'add', `${forged}/32`, 'dev', 'eth0');
    await vpc.resetPacketLog();
    t.false(await pod.netns.ping(vpc.outside.ip, { from: forged, waitMs: 300 }));
    if (isDual) {
      await pod.netns.ip('address', 'add', `${forgedIpv6}/128`, 'dev', 'eth0', 'nodad');
      t.false(await pod.netns.ping(vpc.outside.ipv6, { from: forgedIpv6, waitMs: 300 }));
    }
    t.true(await pod.netns.ping(vpc.outside.ip, { from: pod.ip }), 'its own address goes on working');
    // The router counts what it refuses: an empty count says that the node itself dropped it.
    const seen = [...(await vpc.droppedPackets()), ...(await vpc.packetLog())];
    t.false(seen.some(({ src }) => src === forged || src === forgedIpv6));
    await node.delete(pod);
    await scenes.verify(t, key);
  });
}

test.serial('ADD: gives an IPv4 address alone when the conf says disableIPv6, dual stack', async (t) => {
  const { vpc, node } = scenes.get('compact dual stack');
  const pod = await node.addPod({ conf: node.conf({ disableIPv6: true }) });
  t.is(pod.ips.length, 1);
  t.true(await pod.netns.ping(vpc.outside.ip));
  const addresses = await pod.netns.ipJson('-6', 'address', 'show', 'dev', 'eth0');
  t.deepEqual(addresses, []);
  await node.delete(pod);
  const small = await node.call('ADD', await node.newPod(), { conf: node.conf({ mtu: 68 }) });
  t.is(small.error?.code, 7);
  const withoutIpv6 = await node.addPod({ conf: node.conf({ mtu: 600, disableIPv6: true }) });
  t.true(await withoutIpv6.netns.ping(vpc.outside.ip));
  await node.delete(withoutIpv6);
  await scenes.verify(t, 'compact dual stack');
});

test.serial('ADD: the Pod gets the MTU that the conf asks for, and it carries', async (t) => {
  const { vpc, node } = scenes.get('compact IPv4');
  const pod = await node.addPod({ conf: node.conf({ mtu: 1400, cniVersion: '1.1.0' }) });
  const interfaces = pod.result['interfaces'] as readonly { readonly name: string; readonly mtu: number }[];
  t.deepEqual(
    interfaces.map(({ mtu }) => mtu),
    [1400, 1400],
  );
  const [link] = await pod.netns.ipJson('link', 'show', 'dev', 'eth0');
  t.is(link?.['mtu'], 1400);
  const full = ['ping', '-q', '-c', '1', '-W', '3', '-M', 'do', '-s', `${1400 - 28}`, vpc.outside.ip];
  t.is((await pod.netns.tryRun(full)).code, 0);
  await node.delete(pod);
});

test.serial('supply: addresses that are assigned later serve without a restart', async (t) => {
  const { vpc, node } = scenes.get('compact IPv4');
  const pods = await Promise.all(Array.from({ length: 4 }, () => node.addPod()));
  const refusedPod = await node.newPod();
  const conf = { conf: node.conf({ timeoutMs: 3_000 }) };
  const refused = await callInTime(() => node.call('ADD', refusedPod, conf));
  t.is(refused.error?.code, 101);
  const ip = await vpc.assignIp('eni-2');
  node.writeSupply();
  const late = await waitUntil(() => node.addPod().catch(() => undefined), { what: 'ADD with the new address' });
  t.is(late.ip, ip);
  t.true(await late.netns.ping(vpc.outside.ip));
  await node.delete(late, ...pods);
  await scenes.verify(t, 'compact IPv4');
});
