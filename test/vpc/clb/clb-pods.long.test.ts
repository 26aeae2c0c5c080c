import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../runtime/clock.ts';
import type { ListenerPath } from '../../../sim/vpc/api/model/clb/types.ts';
import { Peer } from '../../../sim/vpc/clb/peer.ts';
import { createTestVpc, type TestVpc } from '../../../sim/vpc/vpc.ts';
import { createPodNetns } from '../../support/pod-netns.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { setUpEniByHand, wirePodByHand } from '../../support/wire-by-hand.ts';

const VIP = '10.80.0.250';
const PUBLIC_VIP = '198.18.0.9';

const NO_CHECK: ListenerPath['healthCheck'] = {
  ...{ HealthSwitch: 0, TimeOut: 2, IntervalTime: 3, HealthNum: 2, UnHealthNum: 2, HttpCode: 31, HttpCheckPath: '/' },
  ...{ HttpCheckDomain: 'a.b', HttpCheckMethod: 'GET', HttpVersion: 'HTTP/1.1', CheckPort: -1, ContextType: '' },
  ...{ SendContext: '', RecvContext: '', CheckType: 'TCP', SourceIpType: 1 },
};
const HTTP_CHECK = { ...NO_CHECK, HealthSwitch: 1, CheckType: 'HTTP' };

/** A listener without health checks, of TCP on port 80 of the VIP. */
function pathOf(targets: ListenerPath['targets'], changes: Partial<ListenerPath> = {}): ListenerPath {
  return {
    ...{ listenerId: 'lbl-00000001', vip: VIP, protocol: 'TCP', port: 80, isSticky: false, resets: false },
    ...{ idleSeconds: 900, healthCheck: NO_CHECK, targets, ...changes },
  };
}

type Pod = { readonly ip: string; readonly peer: Peer };
type World = {
  readonly vpc: TestVpc;
  /** Two Pods of ENIs on n1, one on n2. */
  readonly a: Pod;
  readonly b: Pod;
  readonly c: Pod;
  readonly outside: Peer;
  readonly target: (pod: Pod, weight?: number, port?: number) => ListenerPath['targets'][number];
};

/** Runs a test against nodes with Pods, which serve on port 8080. */
const withPods = test.macro(async (t, body: (t: ExecutionContext, world: World) => Promise<void>) => {
  const subnets = [
    { id: 'subnet-nodes', cidr: '10.80.0.0/24' },
    { id: 'subnet-pods', cidr: '10.80.1.0/24' },
  ];
  const nodes = ['n1', 'n2'].map((name) => ({ name, primarySubnet: 'subnet-nodes' }));
  const vpc = await createTestVpc({ vpcCidrs: ['10.80.0.0/16'], subnets, nodes });
  const peers: Peer[] = [];
  try {
    const podOn = async (nodeName: string, name: string): Promise<Pod> => {
      const node = vpc.node(nodeName);
      const eni = await vpc.attachEni(nodeName, { eniId: `eni-${name}`, subnetId: 'subnet-pods' });
      await setUpEniByHand(node, eni);
      const ip = await vpc.assignIp(eni.eniId);
      const netns = await createPodNetns(`${vpc.prefix}${name}`);
      await wirePodByHand(node, eni, { netns, ip, hostVeth: `veth-${name}` });
      const peer = new Peer(netns, name);
      peers.push(peer);
      await peer.text({ do: 'listen', port: 8080 });
      return { ip, peer };
    };
    const [a, b, c] = [await podOn('n1', 'a'), await podOn('n1', 'b'), await podOn('n2', 'c')];
    const outside = new Peer(vpc.outside.netns, 'outside');
    peers.push(outside);
    const target: World['target'] = ({ ip }, weight = 10, port = 8080) => ({ ip, port, weight });
    await body(t, { vpc, a, b, c, outside, target });
  } finally {
    await Promise.all(peers.map((peer) => peer.close()));
    await vpc.close();
  }
});

const ask = (peer: Peer, count: number, host = VIP, port = 80) => peer.texts({ do: 'ask', host, port, count });

test(
  'the security groups of a load balancer decide who comes in; what is established stays',
  withPods,
  async (t, { vpc, a, c, outside, target }) => {
    const path = pathOf([target(c)], { vip: PUBLIC_VIP });
    const { vip: host, port } = path;
    await vpc.loadBalancing.setListener(path);
    t.regex(await outside.text({ do: 'open', id: 'kept', host, port }), /^c /);
    const refused = { cidr: `${vpc.outside.ip}/32`, isAccepted: false };
    await vpc.loadBalancing.setListener({ ...path, admission: [refused, { cidr: '0.0.0.0/0', isAccepted: true }] });
    t.deepEqual(await ask(outside, 1, host), ['timeout']);
    t.deepEqual(await ask(a.peer, 1, host), [`c ${a.ip}`]);
    t.is(await outside.text({ do: 'say', id: 'kept', text: 'still there' }), 'c still there');
    await vpc.loadBalancing.setListener({ ...path, admission: [] });
    t.deepEqual(await ask(a.peer, 1, host), ['timeout'], 'a group without rules admits nobody');
    await vpc.loadBalancing.removeListener(path.listenerId);
  },
);

test(
  'a connection that nobody uses is forgotten after its idle time, that it had when it began',
  withPods,
  async (t, { vpc, a, c, outside, target }) => {
    const path = pathOf([target(c)], { idleSeconds: 100, resets: true });
    const { vip: host, port } = path;
    await vpc.loadBalancing.setListener(path);
    await Promise.all([a.peer, outside].map((peer) => peer.text({ do: 'open', id: 'short', host, port })));
    t.is(await a.peer.text({ do: 'say', id: 'short', text: 'at once' }), 'c at once');
    await vpc.loadBalancing.setListener({ ...path, idleSeconds: 900 });
    await a.peer.text({ do: 'open', id: 'long', host, port });
    await systemClock.sleep(2_600);
    t.is(await a.peer.text({ do: 'say', id: 'short', text: 'late' }), 'ECONNRESET');
    t.is(await a.peer.text({ do: 'say', id: 'long', text: 'late' }), 'c late');
    await vpc.loadBalancing.setListener(pathOf([target(c)], { idleSeconds: 900 }));
    t.is(await outside.text({ do: 'say', id: 'short', text: 'late' }), 'timeout', 'without RST it hangs');
  },
);

test(
  'Pods see the address of a Pod and of a client of the internet; a public VIP works alike',
  withPods,
  async (t, world) => {
    const { vpc, a, c, outside, target } = world;
    await vpc.loadBalancing.setListener(pathOf([target(c)]));
    t.deepEqual(await ask(a.peer, 2), [`c ${a.ip}`, `c ${a.ip}`]);
    await vpc.loadBalancing.setListener(pathOf([target(a), target(c)], { listenerId: 'lbl-2', vip: PUBLIC_VIP }));
    t.deepEqual((await ask(outside, 2, PUBLIC_VIP)).toSorted(), [`a ${vpc.outside.ip}`, `c ${vpc.outside.ip}`]);
    t.deepEqual(await vpc.droppedPackets(), [], 'the router refused nothing');
  },
);

test(
  'a connection to a Pod on the client’s own node fails, as behind a real one; to itself none is sent',
  withPods,
  async (t, world) => {
    const { vpc, a, b, c, target } = world;
    vpc.allowRepeatedPackets();
    await vpc.loadBalancing.setListener(pathOf([target(b)]));
    const [same = ''] = await ask(a.peer, 1);
    t.false(same.startsWith('b '), `the Pods share a node: ${same}`);
    t.deepEqual(await ask(c.peer, 1), [`b ${c.ip}`], 'from another node it works');
    await vpc.loadBalancing.setListener(pathOf([target(a), target(c)]));
    t.deepEqual(
      await ask(a.peer, 6),
      Array.from({ length: 6 }, () => `c ${a.ip}`),
      'never to itself',
    );
    await vpc.loadBalancing.setListener(pathOf([target(a)]));
    t.deepEqual(await ask(a.peer, 1), ['timeout'], 'there is no other');
  },
);

test(
  'deregistration without the RST: the connection hangs; with it the client learns at once',
  withPods,
  async (t, world) => {
    const { vpc, a, b, c, target } = world;
    for (const resets of [false, true]) {
      await vpc.loadBalancing.setListener(pathOf([target(a)], { resets }));
      t.is(await c.peer.text({ do: 'open', id: `${resets}`, host: VIP, port: 80 }), `a ${c.ip}`);
      await vpc.loadBalancing.setListener(pathOf([target(a, 0), target(b)], { resets }));
      t.deepEqual(
        await ask(c.peer, 3),
        Array.from({ length: 3 }, () => `b ${c.ip}`),
      );
      t.is(await c.peer.text({ do: 'say', id: `${resets}`, text: 'x' }), 'a x', 'weight 0 keeps it');
      await vpc.loadBalancing.setListener(pathOf([target(b)], { resets }));
      t.is(await c.peer.text({ do: 'say', id: `${resets}`, text: 'y' }), resets ? 'ECONNRESET' : 'timeout');
    }
  },
);

test('TCP and UDP on one port are two listeners; a removed one leaves the other', withPods, async (t, world) => {
  const { vpc, a, b, c, target } = world;
  await Promise.all([a, b].map(({ peer }) => peer.text({ do: 'listen', port: 5353, protocol: 'udp' })));
  const udp = { listenerId: 'lbl-udp', protocol: 'UDP' } as const;
  await vpc.loadBalancing.setListener(pathOf([target(a)], { resets: true }));
  await vpc.loadBalancing.setListener(pathOf([target(a, 20, 5353), target(b, 10, 5353)], udp));
  const askUdp = (count: number) => c.peer.texts({ do: 'ask-udp', host: VIP, port: 80, count });
  t.deepEqual((await askUdp(6)).toSorted(), [...Array(4).fill(`a ${c.ip}`), ...Array(2).fill(`b ${c.ip}`)]);
  t.deepEqual(await ask(c.peer, 1), [`a ${c.ip}`]);
  await vpc.loadBalancing.removeListener('lbl-udp');
  t.deepEqual(await askUdp(1), ['timeout']);
  t.deepEqual(await ask(c.peer, 1), [`a ${c.ip}`]);
  await vpc.loadBalancing.removeListener('lbl-00000001');
  await vpc.loadBalancing.removeListener('lbl-00000001');
  t.deepEqual(await ask(c.peer, 1), ['timeout']);
});

test('session persistence: one client has one target, while others have theirs', withPods, async (t, world) => {
  const { vpc, a, b, c, target } = world;
  await vpc.loadBalancing.setListener(pathOf([target(a), target(b)], { isSticky: true }));
  const answers = await ask(c.peer, 8);
  t.is(new Set(answers).size, 1, answers.join());
});

test('health by HTTP on a port of its own: 503 is ill; when all are ill, all are tried', withPods, async (t, world) => {
  const { vpc, a, b, c, target } = world;
  const found = new Map<string, boolean>();
  vpc.loadBalancing.onHealth = ({ key, isAlive }) => void found.set(key, isAlive);
  await a.peer.text({ do: 'listen', port: 9000, protocol: 'http' });
  const check = { ...HTTP_CHECK, CheckPort: 9000, HttpCode: 2 };
  await vpc.loadBalancing.setListener(pathOf([target(a), target(b)], { healthCheck: check }));
  await waitUntil(() => found.size === 2, { what: 'two states', timeoutMs: 10_000, explain: () => `${[...found]}` });
  t.deepEqual([found.get(`${a.ip}:8080`), found.get(`${b.ip}:8080`)], [true, false]);
  await vpc.loadBalancing.settled();
  t.deepEqual(
    await ask(c.peer, 4),
    Array.from({ length: 4 }, () => `a ${c.ip}`),
  );
  await vpc.loadBalancing.setListener(pathOf([target(a), target(b)], { healthCheck: { ...check, HttpCode: 16 } }));
  await waitUntil(() => found.get(`${a.ip}:8080`) === false, { what: 'a to be ill', timeoutMs: 10_000 });
  await vpc.loadBalancing.settled();
  t.deepEqual((await ask(c.peer, 2)).toSorted(), [`a ${c.ip}`, `b ${c.ip}`]);
});

/** Answers to 2,000 connections while two targets take turns in going and coming, drained before they go or not. */
async function answersDuringChanges(world: World, isDrained: boolean): Promise<readonly string[]> {
  const { vpc, a, b, c, target } = world;
  const set = (targets: ListenerPath['targets']) => vpc.loadBalancing.setListener(pathOf(targets, { resets: true }));
  // Drained is longer than one of the connections lasts, also on a busy machine.
  const pause = () => new Promise((resolve) => setTimeout(resolve, isDrained ? 1_500 : 500));
  const both = [target(a), target(b)];
  await set(both);
  const talking = c.peer.texts({ do: 'talk', host: VIP, port: 80, count: 2_000 });
  for (let round = 0; round < 6; round++) {
    const [gone, kept] = round % 2 === 0 ? [a, b] : [b, a];
    if (isDrained) await set([target(gone, 0), target(kept)]);
    await pause();
    await set([target(kept)]);
    await set(both);
  }
  const answers = await talking;
  if (answers.length !== 2_000) throw new Error(`${answers.length} answers to 2,000 connections`);
  return [...new Set(answers)].toSorted();
}

test('no connection fails while targets change, if each is drained before it goes', withPods, async (t, world) => {
  t.deepEqual(await answersDuringChanges(world, true), ['a again', 'b again']);
});

test('connections fail while targets change, if they are not drained', withPods, async (t, world) => {
  // Most are reset; one whose first packet meets the change may be refused, or wait in vain.
  const failures = (await answersDuringChanges(world, false)).filter((answer) => !/^[ab] again$/.test(answer));
  t.true(failures.length > 0);
});
