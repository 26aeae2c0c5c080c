import test from 'ava';
import { createRotatingSource } from '../../cloud/tencent/credentials/rotating.ts';
import { openSdkApi } from '../../cloud/tencent/sdk-api.ts';
import { createTencentCloud } from '../../cloud/tencent/tencent-cloud.ts';
import { systemClock } from '../../runtime/clock.ts';
import { deleteNetnsNames } from '../../sim/support/run-names.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { CloudHost } from '../../sim/vpc/api/host.ts';
import { CloudServer } from '../../sim/vpc/api/http-server.ts';
import { createVpcFabric } from '../../sim/vpc/api/vpc-fabric.ts';
import { createTestVpc } from '../../sim/vpc/vpc.ts';

const SUBNET = { subnetId: 'subnet-pods0000', zone: 'ap-guangzhou-3', cidr: '10.77.1.0/24' };
const CONTEXT = { priority: 'pod' as const, owner: 'node-a', signal: new AbortController().signal };

test('the cloud API moves the packets: what it attached and assigned is routed, what it took away is not', async (t) => {
  const vpc = await createTestVpc({
    vpcCidrs: ['10.77.0.0/16'],
    subnets: [
      { id: 'subnet-nodes000', cidr: '10.77.0.0/24' },
      { id: SUBNET.subnetId, cidr: SUBNET.cidr },
    ],
    nodes: [{ name: 'node-a', primarySubnet: 'subnet-nodes000' }],
  });
  t.teardown(() => vpc.close());
  const host = new CloudHost(
    { vpcId: 'vpc-packets0', subnets: [{ ...SUBNET, subnetId: 'subnet-nodes000', cidr: '10.77.0.0/24' }, SUBNET] },
    systemClock,
    { taskMs: [5, 30], fabric: createVpcFabric(vpc, (instanceId) => instanceId.replace('ins-', '')) },
  );
  const { mac, primaryIp } = vpc.node('node-a').primary;
  const primary = { mac, ip: primaryIp };
  host.model.state.addInstance({ instanceId: 'ins-node-a', cores: 2, subnetId: 'subnet-nodes000', primary });
  const server = new CloudServer(host);
  await server.start();
  t.teardown(() => server.close());
  const key = server.credentials.add('AKIDtest', 'secret');
  const hosts = { vpc: server.endpoint, cvm: server.endpoint, sts: server.endpoint };
  const source = createRotatingSource(systemClock, async () => ({ credential: key }));
  const api = openSdkApi({ region: 'ap-guangzhou', hosts, protocol: 'http' }, source);
  const cloud = createTencentCloud({ api, clock: systemClock, random: seededRandom(1) });
  const spec = { vpcId: 'vpc-packets0', subnetId: SUBNET.subnetId, name: 'eni-of-a', ipCount: 2 };
  const { eni, task } = await cloud.enis.create(spec, CONTEXT);
  await cloud.tasks.settle(task, CONTEXT);
  await cloud.tasks.settle(await cloud.enis.attach(eni.eniId, 'ins-node-a', CONTEXT), CONTEXT);

  const links = await vpc.node('node-a').netns.ipJson('link');
  t.true(links.some((link) => link['address'] === eni.mac));
  const routed = async () => {
    const routes = await vpc.router.ipJson('route', 'show', 'table', 'all');
    return routes
      .map((route) => String(route['dst']))
      .filter((dst) => dst.startsWith('10.77.1.'))
      .sort();
  };
  const wanted = eni.ips.map((ip) => ip.ip);
  t.true(wanted.length === 3);
  const before = await routed();
  t.true(
    wanted.every((ip) => before.includes(ip)),
    `${before.join()} lacks one of ${wanted.join()}`,
  );

  const away = eni.ips
    .filter((ip) => !ip.isPrimary)
    .map((ip) => ip.ip)
    .slice(0, 1);
  const change = await cloud.ips.unassign(eni.eniId, away, CONTEXT);
  for (const one of change.tasks) await cloud.tasks.settle(one, CONTEXT);
  t.false((await routed()).includes(away[0] ?? ''));

  await cloud.tasks.settle(await cloud.enis.detach(eni.eniId, 'ins-node-a', CONTEXT), CONTEXT);
  t.deepEqual(vpc.enisOf('node-a'), []);
  t.false((await vpc.node('node-a').netns.ipJson('link')).some((link) => link['address'] === eni.mac));
});

test('the cloud goes on while a node has no power, and when its instance is then terminated', async (t) => {
  const nodes = { subnetId: 'subnet-nodes000', zone: SUBNET.zone, cidr: '10.77.0.0/24' };
  const subnets = [nodes, SUBNET].map(({ subnetId, cidr }) => ({ id: subnetId, cidr }));
  const vpc = await createTestVpc({
    vpcCidrs: ['10.77.0.0/16'],
    subnets,
    nodes: [{ name: 'node-a', primarySubnet: nodes.subnetId }],
  });
  t.teardown(() => vpc.close());
  const fabric = createVpcFabric(vpc, () => 'node-a');
  const host = new CloudHost({ vpcId: 'vpc-packets0', subnets: [nodes, SUBNET] }, systemClock, { fabric });
  const { mac, primaryIp } = vpc.node('node-a').primary;
  const { state } = host.model;
  state.addInstance({
    ...{ instanceId: 'ins-node-a', cores: 2, subnetId: nodes.subnetId },
    primary: { mac, ip: primaryIp },
  });
  const attach = async (name: string, deviceIndex: number) => {
    const subnet = state.subnet(SUBNET.subnetId);
    const order = { name, description: '', groups: [], tags: {}, isPrimary: false };
    const eni = state.makeEni({ ...order, subnet, ip: subnet.pool.take() });
    eni.state = 'AVAILABLE';
    state.bind(eni, 'ins-node-a', deviceIndex);
    const { eniId } = eni;
    const [primary] = [...eni.ips.keys()];
    state.events.push({
      ...{ kind: 'attach', eniId, instanceId: 'ins-node-a', subnetId: SUBNET.subnetId },
      ...{ mac: eni.mac, primaryIp: primary ?? '' },
    });
    await host.catchUp();
    return eniId;
  };
  const before = await attach('before', 1);
  state.events.push({ kind: 'assign', eniId: before, ip: '10.77.1.100' });
  await host.catchUp();
  await deleteNetnsNames([vpc.node('node-a').netns.name]);
  const after = await attach('after', 2);
  state.events.push({ kind: 'unassign', eniId: before, ip: '10.77.1.100' });
  state.events.push({ kind: 'assign', eniId: before, ip: '10.77.1.101' });
  state.events.push({ kind: 'assign', eniId: after, ip: '10.77.1.102' });
  await host.catchUp();
  t.deepEqual(vpc.enisOf('node-a'), [before, after]);
  state.removeInstance('ins-node-a');
  await host.catchUp();
  t.deepEqual(vpc.enisOf('node-a'), []);
  t.is(host.brokenBy, undefined);
});

test('CloudHost: packets take a route when its creation has been answered, also of two at once', async (t) => {
  const routes = new Map<string, readonly string[]>();
  const nothing = async (): Promise<void> => undefined;
  const rest = {
    attach: nothing,
    detach: nothing,
    assign: nothing,
    unassign: nothing,
    bindEip: nothing,
    unbindEip: nothing,
    setListener: nothing,
    setAdmission: nothing,
    removeListener: nothing,
    setProxy: nothing,
  };
  const setGlobalRoutes = async (cidr: string, ips: readonly string[]): Promise<void> => void routes.set(cidr, ips);
  const spec = { vpcId: 'vpc-packets0', subnets: [SUBNET] };
  const host = new CloudHost(spec, systemClock, { fabric: { ...rest, setGlobalRoutes } });
  const create = (cidr: string, gatewayId: string) =>
    host.serve('vpc', 'CreateGlobalRoutes', {
      VpcId: spec.vpcId,
      GlobalRoutes: [{ GatewayType: 'NORMAL_CVM', GatewayId: gatewayId, DestinationCidrBlock: cidr }],
    });
  const answers = await Promise.all([create('192.168.0.0/26', '10.77.1.4'), create('192.168.0.64/26', '10.77.1.5')]);
  t.deepEqual(
    answers.map(({ kind }) => kind),
    ['answer', 'answer'],
    JSON.stringify(answers),
  );
  t.deepEqual([...routes].toSorted(), [
    ['192.168.0.0/26', ['10.77.1.4']],
    ['192.168.0.64/26', ['10.77.1.5']],
  ]);
});

test('CloudHost: serves nothing more once its packets cannot follow, and says why', async (t) => {
  const broken = async (): Promise<void> => {
    throw new Error('ip did not end in time');
  };
  const all = { attach: broken, detach: broken, assign: broken, unassign: broken, bindEip: broken, unbindEip: broken };
  const packets = { setListener: broken, removeListener: broken, setProxy: broken };
  const host = new CloudHost({ vpcId: 'vpc-packets0', subnets: [SUBNET] }, systemClock, {
    fabric: { ...all, setAdmission: broken, setGlobalRoutes: broken, ...packets },
  });
  await host.catchUp();
  t.is(host.brokenBy, undefined);
  host.model.state.events.push({ kind: 'detach', eniId: 'eni-any' });
  await t.throwsAsync(host.catchUp(), { message: 'ip did not end in time' });
  await t.throwsAsync(host.serve('vpc', 'DescribeSubnets', {}), { message: 'ip did not end in time' });
  t.regex(String(host.brokenBy), /ip did not end in time/);
});
