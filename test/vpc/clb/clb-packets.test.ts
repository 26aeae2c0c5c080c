import test from 'ava';
import { systemClock } from '../../../runtime/clock.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createVpcFabric } from '../../../sim/vpc/api/vpc-fabric.ts';
import { listenerRules } from '../../../sim/vpc/clb/listener-chain.ts';
import { Peer } from '../../../sim/vpc/clb/peer.ts';
import { slotsOf } from '../../../sim/vpc/clb/slots.ts';
import { createTestVpc } from '../../../sim/vpc/vpc.ts';
import { waitUntil } from '../../support/wait-until.ts';

const VPC = 'vpc-balanced';
const SUBNET = { subnetId: 'subnet-nodes000', zone: 'ap-guangzhou-3', cidr: '10.79.0.0/24' };
const PORT = 30_080;

type Answer = Readonly<Record<string, unknown>>;

/** How often each name is first in a text. */
function countNames(texts: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(Object.groupBy(texts, (text) => text.split(' ')[0] ?? '')).map(([name, all]) => [
      name,
      all?.length ?? 0,
    ]),
  );
}

test('slotsOf: as weights say, without their divisor, spread; none without weight', (t) => {
  const target = (ip: string, weight: number) => ({ ip, port: 1, weight });
  const ips = (weights: readonly number[]) =>
    slotsOf(weights.map((weight, at) => target(`${at}`, weight))).map(({ ip }) => ip);
  t.deepEqual(ips([10, 10]), ['0', '1']);
  t.deepEqual(ips([30, 10]), ['0', '0', '1', '0']);
  t.deepEqual(ips([0, 5]), ['1']);
  t.deepEqual(ips([0, 0]), []);
  t.deepEqual(ips([]), []);
  t.is(ips(Array.from({ length: 100 }, (_, at) => at + 1)).length <= 600, true);
});

test('listenerRules: a target never gets its own connection', (t) => {
  const target = (ip: string) => ({ ip, port: 8080, weight: 1 });
  const tcp = { protocol: 'TCP', isSticky: false } as const;
  t.deepEqual(listenerRules(tcp, []), ['drop']);
  t.deepEqual(listenerRules(tcp, [target('10.0.0.1')])[1], 'ip saddr 10.0.0.1 drop');
  t.deepEqual(listenerRules({ ...tcp, isSticky: true }, [target('10.0.0.1'), target('10.0.0.2')]), [
    'meta mark set jhash ip saddr mod 2 seed 0x1',
    'meta mark set ip saddr . meta mark map { 10.0.0.1 . 0 : 1, 10.0.0.2 . 1 : 0 }',
    'meta l4proto tcp dnat to meta mark map { 0 : 10.0.0.1 . 8080, 1 : 10.0.0.2 . 8080 }',
  ]);
});

test('the CLB API moves packets: client addresses, weights, weight 0, a RST, and health by probes', async (t) => {
  const nodes = ['n1', 'n2', 'n3'].map((name) => ({ name, primarySubnet: SUBNET.subnetId }));
  const subnets = [{ id: SUBNET.subnetId, cidr: SUBNET.cidr }];
  const vpc = await createTestVpc({ vpcCidrs: ['10.79.0.0/16'], subnets, nodes });
  t.teardown(() => vpc.close());
  const fabric = createVpcFabric(vpc, (instanceId) => instanceId.replace('ins-', ''));
  const host = new CloudHost({ vpcId: VPC, subnets: [SUBNET] }, systemClock, {
    taskMs: [1, 2],
    fabric,
    perSecond: () => 500,
  });
  for (const { name } of nodes) {
    const { mac, primaryIp: ip } = vpc.node(name).primary;
    host.model.state.addInstance({
      instanceId: `ins-${name}`,
      cores: 2,
      subnetId: SUBNET.subnetId,
      primary: { mac, ip },
    });
  }
  const call = async (action: string, params: object): Promise<Answer> => {
    const answer = await host.serve('clb', action, { ...params });
    if (answer.kind !== 'answer') throw new Error(`${action}: ${JSON.stringify(answer)}`);
    return { ...answer.response };
  };
  const done = async (action: string, params: object): Promise<Answer> => {
    const answer = await call(action, params);
    await waitUntil(async () => (await call('DescribeTaskStatus', { TaskId: answer['RequestId'] }))['Status'] === 0, {
      what: action,
      timeoutMs: 10_000,
      everyMs: 3,
    });
    return answer;
  };
  const peers = ['n1', 'n2', 'n3'].map((name) => new Peer(vpc.node(name).netns, name));
  t.teardown(() => Promise.all(peers.map((peer) => peer.close())));
  const [n1, n2, client] = peers;
  if (n1 === undefined || n2 === undefined || client === undefined) throw new Error('a peer is missing');
  await Promise.all([n1, n2].map((peer) => peer.text({ do: 'listen', port: PORT })));

  const balancer = { LoadBalancerType: 'INTERNAL', VpcId: VPC, SubnetId: SUBNET.subnetId };
  await done('CreateLoadBalancer', balancer);
  const [lb] = host.model.state.clb.balancers().values();
  const { loadBalancerId: LoadBalancerId = '', vip = '' } = lb ?? {};
  const HealthCheck = { IntervalTime: 3, TimeOut: 2, HealthNum: 2, UnHealthNum: 2 };
  const create = { LoadBalancerId, Ports: [80], Protocol: 'TCP', DeregisterTargetRst: true, HealthCheck };
  const ListenerId = String((await done('CreateListener', create))['ListenerIds']);
  const target = (name: string, Weight = 10) => ({ ListenerId, InstanceId: `ins-${name}`, Port: PORT, Weight });
  await call('BatchRegisterTargets', { LoadBalancerId, Targets: [target('n1', 30), target('n2')] });

  const ask = (count: number) => client.texts({ do: 'ask', host: vip, port: 80, count });
  const first = await ask(8);
  t.deepEqual(countNames(first), { n1: 6, n2: 2 });
  t.deepEqual([...new Set(first.map((text) => text.split(' ')[1]))], [vpc.node('n3').primary.primaryIp]);
  t.regex(await client.text({ do: 'open', id: 'kept', host: vip, port: 80 }), /^n1 /);
  const { ListenerId: _, ...plain } = target('n1', 0);
  await done('ModifyTargetWeight', { LoadBalancerId, ListenerId, Targets: [plain] });
  t.deepEqual(countNames(await ask(4)), { n2: 4 }, 'weight 0: no new connection');
  t.is(await client.text({ do: 'say', id: 'kept', text: 'still there' }), 'n1 still there');
  await call('BatchDeregisterTargets', { LoadBalancerId, Targets: [target('n1')] });
  t.is(await client.text({ do: 'say', id: 'kept', text: 'and now' }), 'ECONNRESET');

  await call('BatchRegisterTargets', { LoadBalancerId, Targets: [target('n1')] });
  const details = async () => {
    const { LoadBalancers } = await call('DescribeTargetHealth', { LoadBalancerIds: [LoadBalancerId] });
    return JSON.stringify(LoadBalancers).match(/(?<="HealthStatusDetail":")\w+/g) ?? [];
  };
  const become = (wanted: string) =>
    waitUntil(async () => (await details()).join() === wanted, { what: wanted, timeoutMs: 20_000, everyMs: 20 });
  await become('Alive,Alive');
  await waitUntil(async () => (await n1.texts({ do: 'clients', port: PORT })).includes('100.64.0.10'), {
    what: 'a probe from the range of its own',
  });
  await n2.text({ do: 'silence', port: PORT });
  await become('Dead,Alive');
  await vpc.loadBalancing.settled();
  t.deepEqual(countNames(await ask(4)), { n1: 4 }, 'what is ill gets none');
  await done('DeleteLoadBalancerListeners', { LoadBalancerId });
  t.deepEqual(await ask(1), ['timeout'], 'no listener any more');
  t.is(host.brokenBy, undefined);
});
