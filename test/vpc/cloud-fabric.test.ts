import test from 'ava';
import { createRotatingSource } from '../../cloud/tencent/credentials/rotating.ts';
import { openSdkApi } from '../../cloud/tencent/sdk-api.ts';
import { createTencentCloud } from '../../cloud/tencent/tencent-cloud.ts';
import { systemClock } from '../../runtime/clock.ts';
import { seededRandom } from '../support/seeded-random.ts';
import { CloudHost } from './api/host.ts';
import { CloudServer } from './api/http-server.ts';
import { createVpcFabric } from './api/vpc-fabric.ts';
import { createTestVpc } from './vpc.ts';

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

test('CloudHost: serves nothing more once its packets cannot follow, and says why', async (t) => {
  const broken = async (): Promise<void> => {
    throw new Error('ip did not end in time');
  };
  const host = new CloudHost({ vpcId: 'vpc-packets0', subnets: [SUBNET] }, systemClock, {
    fabric: { attach: broken, detach: broken, assign: broken, unassign: broken, bindEip: broken, unbindEip: broken },
  });
  await host.catchUp();
  t.is(host.brokenBy, undefined);
  host.model.state.events.push({ kind: 'detach', eniId: 'eni-any' });
  await t.throwsAsync(host.catchUp(), { message: 'ip did not end in time' });
  await t.throwsAsync(host.serve('vpc', 'DescribeSubnets', {}), { message: 'ip did not end in time' });
  t.regex(String(host.brokenBy), /ip did not end in time/);
});
