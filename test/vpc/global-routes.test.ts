import test, { type ExecutionContext } from 'ava';
import { createTencentCloud } from '../../cloud/tencent/tencent-cloud.ts';
import { systemClock } from '../../runtime/clock.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { CloudHost } from '../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../sim/vpc/api/in-process.ts';
import { createVpcFabric } from '../../sim/vpc/api/vpc-fabric.ts';
import { createTestVpc, type TestVpc } from '../../sim/vpc/vpc.ts';
import { createPodNetns, type PodNetns } from '../support/pod-netns.ts';
import { setUpEniByHand, wirePodByHand } from '../support/wire-by-hand.ts';

const SUBNET = { id: 'subnet-nodes000', cidr: '10.78.0.0/24' };
const NAMES = ['n1', 'n2', 'n3'];
const REFUSED = { waitMs: 300 } as const;

/** Runs a test against a VPC of its own. */
const withVpc = test.macro(async (t, body: (t: ExecutionContext, vpc: TestVpc) => Promise<void>) => {
  const vpc = await createTestVpc({
    vpcCidrs: ['10.78.0.0/16'],
    subnets: [SUBNET],
    nodes: NAMES.map((name) => ({ name, primarySubnet: SUBNET.id })),
  });
  try {
    await body(t, vpc);
  } finally {
    await vpc.close();
  }
});

/** Wires a Pod with an address of a node's own network: a route on the node, no rule and no ENI. */
async function podOn(vpc: TestVpc, node: string, ip: string, name = `${node}-gr`): Promise<PodNetns> {
  const { netns } = vpc.node(node);
  const pod = await createPodNetns(`${vpc.prefix}${name}`);
  await netns.sysctl({ 'net/ipv4/ip_forward': 1, 'net/ipv4/conf/eth0/rp_filter': 2 });
  await netns.ipBatch([
    `link add ${name} address 0a:58:00:00:00:02 type veth peer name eth0 netns ${pod.name}`,
    `link set ${name} up`,
    `route add ${ip} dev ${name}`,
  ]);
  await pod.ipBatch([
    'link set eth0 up',
    `address add ${ip}/32 dev eth0`,
    'route add 169.254.1.1 dev eth0 scope link',
    'route add default via 169.254.1.1 dev eth0',
    'neigh add 169.254.1.1 lladdr 0a:58:00:00:00:02 dev eth0 nud permanent',
  ]);
  return pod;
}

const ipOf = (vpc: TestVpc, node: string): string => vpc.node(node).primary.primaryIp;

test(
  'the cloud API leads networks of Pods to nodes: packets pass, follow a moved route, and end with it',
  withVpc,
  async (t, vpc) => {
    const cloudSubnet = { subnetId: SUBNET.id, zone: 'ap-guangzhou-3', cidr: SUBNET.cidr };
    const fabric = createVpcFabric(vpc, (instanceId) => instanceId.replace('ins-', ''));
    const host = new CloudHost({ vpcId: 'vpc-routes00', subnets: [cloudSubnet] }, systemClock, { fabric });
    const cloud = createTencentCloud({ api: createInProcessApi(host), clock: systemClock, random: seededRandom(1) });
    const context = { priority: 'pod' as const, owner: 'n1', signal: new AbortController().signal };
    const routes = cloud.routes.global;
    const create = async (cidr: string, node: string) => {
      const spec = { cidr, gatewayIp: ipOf(vpc, node), description: '' };
      return await routes.create('vpc-routes00', [spec], context);
    };
    const [one, two] = await Promise.all([podOn(vpc, 'n1', '172.16.1.5'), podOn(vpc, 'n2', '172.16.2.5')]);
    t.false(await one.ping('172.16.2.5', REFUSED), 'no route yet');
    const [toOne] = [await create('172.16.1.0/24', 'n1'), await create('172.16.2.0/24', 'n2')];
    await host.catchUp();
    t.true(await one.ping('172.16.2.5'), 'Pod to Pod of another node');
    t.true(await two.ping('172.16.1.5'));
    t.true(await vpc.node('n3').netns.ping('172.16.1.5'), 'any node of the VPC');
    // The same address on another node: the route alone decides who is reached.
    await podOn(vpc, 'n3', '172.16.1.5', 'n3-gr');
    await routes.delete('vpc-routes00', toOne, context);
    const moved = await create('172.16.1.0/24', 'n3');
    await host.catchUp();
    await vpc.resetPacketLog();
    t.true(await two.ping('172.16.1.5'));
    const ways = (await vpc.packetLog()).filter(({ dst }) => dst === '172.16.1.5').map(({ to }) => to);
    t.deepEqual(ways, ['n3/eth0']);
    t.false(await one.ping('172.16.2.5', REFUSED), 'its network is no longer that of its node');
    await routes.delete('vpc-routes00', moved, context);
    await host.catchUp();
    t.false(await two.ping('172.16.1.5', REFUSED), 'no route any more');
    t.is(host.brokenBy, undefined);
  },
);

test('router: drops a source of a network of Pods on every port but that of its route', withVpc, async (t, vpc) => {
  await vpc.addGlobalRoute({ cidr: '172.16.1.0/24', nodeIp: ipOf(vpc, 'n1') });
  const liar = await podOn(vpc, 'n2', '172.16.1.7');
  t.false(await liar.ping(ipOf(vpc, 'n3'), REFUSED));
  const [drop] = await vpc.droppedPackets();
  t.like(drop, { via: 'n2/eth0', reason: 'source-address', src: '172.16.1.7' });
  const honest = await podOn(vpc, 'n1', '172.16.1.8');
  t.true(await honest.ping(ipOf(vpc, 'n3')));
});

test('setGlobalRoutes: no packet is lost while a route moves, and none goes to two nodes', withVpc, async (t, vpc) => {
  await Promise.all(['n1', 'n2'].map((node) => podOn(vpc, node, '172.16.9.5')));
  const move = (node: string) => vpc.addGlobalRoute({ cidr: '172.16.9.0/24', nodeIp: ipOf(vpc, node) });
  await move('n1');
  t.true(await vpc.node('n3').netns.ping('172.16.9.5'));
  await vpc.resetPacketLog();
  const ping = vpc.node('n3').netns.tryRun(['ping', '-n', '-q', '-i', '0.002', '-c', '600', '172.16.9.5']);
  for (let count = 0; count < 40; count++) await move(count % 2 === 0 ? 'n2' : 'n1');
  // A reply that leaves a node after its route has moved is a foreign source there: only the way to it is counted.
  t.regex((await ping).stdout, /600 packets transmitted/);
  const ways = (await vpc.packetLog()).filter(({ dst }) => dst === '172.16.9.5');
  t.deepEqual(ways.map(({ to }) => to).sort(), ['n1/eth0', 'n2/eth0']);
  t.is(
    ways.reduce((sum, { packets }) => sum + packets, 0),
    600,
  );
});

test(
  'setGlobalRoutes: a node that is not there swallows its packets, and a node that comes back gets them',
  withVpc,
  async (t, vpc) => {
    await podOn(vpc, 'n1', '172.16.1.5');
    await vpc.addGlobalRoute({ cidr: '172.16.1.0/24', nodeIp: '10.78.0.200' });
    t.false(await vpc.node('n3').netns.ping('172.16.1.5', REFUSED));
    await vpc.addGlobalRoute({ cidr: '172.16.1.0/24', nodeIp: ipOf(vpc, 'n1') });
    t.true(await vpc.node('n3').netns.ping('172.16.1.5'));
    await vpc.replug('n1/eth0');
    t.true(await vpc.node('n3').netns.ping('172.16.1.5'));
    await vpc.removeGlobalRoute('172.16.1.0/24');
    await vpc.removeGlobalRoute('172.16.1.0/24');
    t.false(await vpc.node('n3').netns.ping('172.16.1.5', REFUSED));
  },
);

/** A Pod with an ENI's address and one of the node's own network on one node, wired with rules by Pod. */
async function hybridNode(vpc: TestVpc): Promise<PodNetns> {
  const node = vpc.node('n1');
  const eni = await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: SUBNET.id });
  await setUpEniByHand(node, eni);
  const ip = await vpc.assignIp('eni-1');
  const eniPod = await createPodNetns(`${vpc.prefix}eni-pod`);
  await wirePodByHand(node, eni, { netns: eniPod, ip, hostVeth: 'veth-eni' });
  await podOn(vpc, 'n1', '172.16.1.5');
  await vpc.addGlobalRoute({ cidr: '172.16.1.0/24', nodeIp: ipOf(vpc, 'n1') });
  return eniPod;
}

test('close: fails when packets ran in a circle: an ENI Pod to a Pod of the node without rule 1024', async (t) => {
  const vpc = await createTestVpc({
    vpcCidrs: ['10.78.0.0/16'],
    subnets: [SUBNET],
    nodes: [{ name: 'n1', primarySubnet: SUBNET.id }],
  });
  t.teardown(async () => {
    vpc.allowRepeatedPackets();
    await vpc.close();
  });
  const eniPod = await hybridNode(vpc);
  t.false(await eniPod.ping('172.16.1.5', REFUSED));
  // A reset of the log does not hide it.
  await vpc.resetPacketLog();
  const [loop] = await vpc.repeatedPackets();
  t.like(loop, { via: 'eni-1', dst: '172.16.1.5', protocol: 'icmp' });
  t.true((loop?.packets ?? 0) > 5, JSON.stringify(loop));
  const text = /packets passed the router more than once: 10\.78\.0\.\d+ > 172\.16\.1\.5 icmp came in by eni-1 again/;
  await t.throwsAsync(vpc.close(), { message: text });
});

test('close: is content with the same node once rule 1024 is there', withVpc, async (t, vpc) => {
  const eniPod = await hybridNode(vpc);
  await vpc.node('n1').netns.ip('rule', 'add', 'to', '172.16.1.0/24', 'lookup', 'main', 'pref', '1024');
  t.true(await eniPod.ping('172.16.1.5'));
  t.deepEqual(await vpc.packetLog(), []);
});

test(
  'repeatedPackets: a reply is no repetition, and neither is a packet that a node translates and forwards',
  withVpc,
  async (t, vpc) => {
    await podOn(vpc, 'n2', '172.16.2.5');
    await vpc.addGlobalRoute({ cidr: '172.16.2.0/24', nodeIp: ipOf(vpc, 'n2') });
    const { netns } = vpc.node('n1');
    await netns.sysctl({ 'net/ipv4/ip_forward': 1 });
    // As kube-proxy does for a NodePort whose Pod is elsewhere.
    await netns.nft(`table ip nodeport {
    chain prerouting { type nat hook prerouting priority dstnat; tcp dport 30080 dnat to 172.16.2.5:80; }
    chain postrouting { type nat hook postrouting priority srcnat; ip daddr 172.16.2.5 masquerade; }
  }\n`);
    const argv = ['timeout', '3', 'bash', '-c', `exec 3<>/dev/tcp/${ipOf(vpc, 'n1')}/30080`];
    for (let count = 0; count < 3; count++) await vpc.node('n3').netns.tryRun(argv);
    const seen = (await vpc.packetLog()).filter(({ dst, protocol }) => dst === '172.16.2.5' && protocol === 'tcp');
    t.true(seen.length > 0, 'the node forwarded none');
    t.true(await vpc.node('n3').netns.ping('172.16.2.5', { count: 5 }));
    t.deepEqual(await vpc.repeatedPackets(), []);
  },
);
