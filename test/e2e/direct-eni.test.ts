import test from 'ava';
import { partOf, shortTest } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openScenes, type Scene } from './support/scene.ts';
import type { AttachedPod, CallOptions, PodOptions, SceneNode } from './support/scene-node.ts';

const NODES = [
  {
    name: 'n1',
    enis: [{ eniId: 'eni-1', ips: 2 }],
    directEnis: [{ eniId: 'eni-d1' }, { eniId: 'eni-d2', subnetId: 'subnet-a' }],
  },
  { name: 'n2', enis: [{ eniId: 'eni-2', subnetId: 'subnet-a', ips: 2 }], directEnis: [{ eniId: 'eni-d3' }] },
] as const;

const SERVICES = '10.96.0.0/16';

const SCENES = partOf(
  [
    { key: 'compact', ruleMode: 'compact', isDual: false },
    { key: 'per-pod', ruleMode: 'per-pod', isDual: false },
    { key: 'dual stack', ruleMode: 'compact', isDual: true },
  ] as const,
  ({ key }) => key === 'compact',
);

const scenes = openScenes(
  test,
  SCENES.map((scene) => ({ ...scene, nodes: NODES, agentFlags: { 'service-cidrs': SERVICES } })),
);

const callOf = (node: SceneNode, extra: object = {}): CallOptions => ({
  plugin: 'tke-direct-eni',
  conf: node.conf({ name: 'tke-direct-eni', type: 'tke-direct-eni', ...extra }),
});

const addDirect = (node: SceneNode, options: PodOptions = {}): Promise<AttachedPod> =>
  node.addPod({ ...options, ...callOf(node) });

const nodesOf = ({ nodes }: Scene): readonly [SceneNode, SceneNode] => nodes as readonly [SceneNode, SceneNode];

/** Waits until a node is as if nobody had been there. */
async function awaitRest(node: SceneNode): Promise<void> {
  let found: readonly string[] = [];
  await waitUntil(
    async () => {
      found = await node.violations();
      return found.length === 0;
    },
    { what: 'a node at rest', explain: () => `${found.join('\n')}\n${node.agent.logs().slice(-3_000)}` },
  );
}

/** Tells the agent what the VPC says now, and waits until it is in force. */
async function supplyNow(node: SceneNode): Promise<void> {
  const countOf = (): number => node.agent.logs().split('supply in force').length;
  const before = countOf();
  node.writeSupply();
  await waitUntil(() => countOf() > before, { what: 'the supply in force' });
}

for (const { key, isDual } of SCENES) {
  test.serial(`tke-direct-eni: packets flow to and from nodes, Pods and the outside, ${key}`, async (t) => {
    const scene = scenes.get(key);
    const { vpc } = scene;
    const [n1, n2] = nodesOf(scene);
    const direct = await addDirect(n1);
    const pods = { shared: await n1.addPod(), sharedFar: await n2.addPod(), directFar: await addDirect(n2) };
    await scenes.verify(t, key);
    for (const family of isDual ? [0, 1] : [0]) {
      const ipOf = (pod: AttachedPod): string => pod.ips[family] ?? 'no address of this family';
      const outside = family === 0 ? vpc.outside.ip : vpc.outside.ipv6;
      const primaryOf = (node: SceneNode): string => {
        const { primaryIp, primaryIpv6 } = vpc.node(node.name).primary;
        return (family === 0 ? primaryIp : primaryIpv6) ?? 'no address of this family';
      };
      await vpc.resetPacketLog();
      for (const [name, pod] of Object.entries(pods)) {
        t.true(await direct.netns.ping(ipOf(pod)), `direct -> ${name}`);
        t.true(await pod.netns.ping(ipOf(direct)), `${name} -> direct`);
      }
      t.true(await direct.netns.ping(primaryOf(n1)), 'direct -> its node');
      t.true(await n1.netns.ping(ipOf(direct)), 'its node -> direct, as a probe');
      t.true(await direct.netns.ping(primaryOf(n2)), 'direct -> the other node');
      t.true(await n2.netns.ping(ipOf(direct)), 'the other node -> direct');
      t.true(await direct.netns.ping(outside), 'direct -> outside');
      t.true(await vpc.outside.netns.ping(ipOf(direct)), 'outside -> direct');
      t.deepEqual(await vpc.droppedPackets(), [], 'the VPC refused nothing');
      const log = await vpc.packetLog();
      const ways = log.filter((way) => way.src === ipOf(direct));
      t.deepEqual(
        [...new Set(ways.map(({ via }) => via))],
        [vpc.eniOf(ipOf(direct))],
        'it leaves by its own ENI alone',
      );
      t.false(
        log.some(({ src, dst }) => src === primaryOf(n1) && dst === ipOf(direct)),
        'probes of its own node do not go by the VPC',
      );
    }
    await Promise.all([n1.delete(direct, pods.shared), n2.delete(pods.sharedFar, pods.directFar)]);
    await scenes.verify(t, key);
  });
}

for (const { key } of SCENES.filter(({ isDual }) => !isDual)) {
  test.serial(`tke-direct-eni: a Pod reaches Services by its node, wherever the backend is, ${key}`, async (t) => {
    const scene = scenes.get(key);
    const { vpc } = scene;
    const [n1, n2] = nodesOf(scene);
    const direct = await addDirect(n1);
    const backends = {
      'a Pod of the node': (await n1.addPod()).ip,
      'a Pod of another node': (await n2.addPod()).ip,
      'another such Pod of the node': (await addDirect(n1)).ip,
      'such a Pod of another node': (await addDirect(n2)).ip,
      'the node itself': vpc.node('n1').primary.primaryIp,
      'another node': vpc.node('n2').primary.primaryIp,
      'the outside': vpc.outside.ip,
    };
    const lines = Object.values(backends).map((ip, index) => `ip daddr 10.96.0.${index + 1} dnat to ${ip}`);
    // As kube-proxy: at dstnat, in a table of its own.
    await n1.netns.nft(`table ip services {
      chain prerouting { type nat hook prerouting priority dstnat; policy accept;
        ${lines.join('\n')}
        ip saddr ${vpc.outside.ip} ip daddr ${backends['the node itself']} dnat to ${direct.ip}
      }
    }`);
    try {
      await vpc.resetPacketLog();
      for (const [index, name] of Object.keys(backends).entries()) {
        t.true(await direct.netns.ping(`10.96.0.${index + 1}`), name);
      }
      t.true(await vpc.outside.netns.ping(backends['the node itself']), 'a Service of the node, asked from outside');
      await n1.netns.ip('address', 'add', '169.254.77.7/32', 'dev', 'lo');
      t.true(await direct.netns.ping('169.254.77.7'), 'link-local is the node');
      t.deepEqual(await vpc.droppedPackets(), [], 'the VPC refused nothing');
    } finally {
      await n1.netns.nft('table ip services\ndelete table ip services\n');
      await n1.netns.tryRun(['ip', 'address', 'del', '169.254.77.7/32', 'dev', 'lo']);
    }
  });
}

shortTest.serial(
  'tke-direct-eni: tells what it gave in the words of each CNI version, again and in CHECK',
  async (t) => {
    const scene = scenes.get('compact');
    const [node] = nodesOf(scene);
    for (const cniVersion of ['0.3.1', '0.4.0', '1.0.0', '1.1.0']) {
      const options = { ...callOf(node), conf: node.conf({ name: 'direct', type: 'tke-direct-eni', cniVersion }) };
      const pod = await node.addPod(options);
      const { interfaces, ips } = pod.result as Record<string, readonly Record<string, unknown>[]>;
      const eniId = scene.vpc.eniOf(pod.ip);
      const eni = node.directEnis.find((one) => one.eniId === eniId);
      t.deepEqual(
        interfaces?.map(({ name }) => name),
        [(await node.hostVeths())[0], 'eth0', 'veth0'],
      );
      t.like(interfaces?.[1], { mac: eni?.mac, sandbox: pod.netns.path });
      t.like(ips?.[0], { address: `${eni?.primaryIp}/24`, gateway: eni?.gateway, interface: 1 }, cniVersion);
      const again = await node.call('ADD', pod, options);
      t.deepEqual(again.result, pod.result);
      if (cniVersion !== '0.3.1') {
        const conf = { ...options.conf, prevResult: pod.result };
        t.is((await node.call('CHECK', pod, { ...options, conf })).exitCode, 0);
        await pod.netns.ip('link', 'set', 'veth0', 'down');
        const found = await node.call('CHECK', pod, { ...options, conf });
        t.regex(found.stdout, /link veth0: up is false/);
      }
      await node.delete(pod);
    }
    await scenes.verify(t, 'compact');
  },
);

shortTest.serial(
  'tke-direct-eni: no ENI goes to two Pods, and a third Pod is told that there is none left',
  async (t) => {
    const scene = scenes.get('compact');
    const [node] = nodesOf(scene);
    const pods = await Promise.all([addDirect(node), addDirect(node)]);
    t.is(new Set(pods.map(({ ip }) => ip)).size, 2);
    const answer = await node.call('ADD', await node.newPod(), callOf(node));
    t.is(answer.error?.code, 101);
    t.regex(answer.stdout, /no exclusive ENI left: free 0, cooling 0, in use 2 of 2/);
    await node.delete(...pods);
    await scenes.verify(t, 'compact');
  },
);

shortTest.serial('tke-direct-eni: an ENI that is marked goes to its own Pod alone', async (t) => {
  const scene = scenes.get('compact');
  const { vpc } = scene;
  const [node] = nodesOf(scene);
  const args = (name: string) =>
    `IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${name};K8S_POD_INFRA_CONTAINER_ID=x;K8S_POD_UID=uid-${name}`;
  for (const eniId of ['eni-d1', 'eni-d2'])
    vpc.markEni(eniId, { namespace: 'default', name: 'web-0', uid: 'uid-web-0' });
  vpc.markEni('eni-d1', { namespace: 'default', name: 'db-0', uid: 'uid-other' });
  await supplyNow(node);
  try {
    const other = await node.call('ADD', await node.newPod({ name: 'other', args: args('other') }), callOf(node));
    t.is(other.error?.code, 101, 'a Pod without a mark gets none of them');
    const stale = await node.call('ADD', await node.newPod({ name: 'db-0', args: args('db-0') }), callOf(node));
    t.regex(stale.stdout, /kept or prepared for this Pod is not here yet/, 'the mark names another life of the Pod');
    const own = await addDirect(node, { name: 'web-0', args: args('web-0') });
    t.is(vpc.eniOf(own.ip), 'eni-d2');
    await node.delete(own);
  } finally {
    for (const eniId of ['eni-d1', 'eni-d2']) vpc.markEni(eniId, undefined);
    await supplyNow(node);
  }
  const free = await addDirect(node);
  await node.delete(free);
  await scenes.verify(t, 'compact');
});

shortTest.serial(
  'tke-direct-eni: an interface that somebody sets up while nobody has it is brought back to rest',
  async (t) => {
    const [node] = nodesOf(scenes.get('compact'));
    const [eni] = node.directEnis;
    await node.netns.ip('link', 'set', eni?.ifname ?? '', 'up');
    await node.netns.ip('address', 'add', '10.0.2.77/24', 'dev', eni?.ifname ?? '');
    await awaitRest(node);
    t.pass();
  },
);

shortTest.serial(
  'tke-direct-eni: a Pod whose namespace died gives its ENI back, plugged in again, and DEL succeeds',
  async (t) => {
    const scene = scenes.get('compact');
    const { vpc } = scene;
    const [node] = nodesOf(scene);
    const pod = await addDirect(node);
    const eniId = vpc.eniOf(pod.ip) ?? '';
    await pod.netns.close();
    await node.delete(pod);
    t.deepEqual(await node.tracesOf(pod.ip), []);
    // A veth dies with the namespace that it sits in, a real interface comes back.
    await vpc.replug(eniId);
    await awaitRest(node);
    const again = await Promise.all([addDirect(node), addDirect(node)]);
    for (const one of again) t.true(await one.netns.ping(vpc.outside.ip));
    await node.delete(...again);
    await scenes.verify(t, 'compact');
  },
);
