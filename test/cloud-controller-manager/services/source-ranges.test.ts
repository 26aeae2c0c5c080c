/** Source ranges of Services: the security group that is made for them, what it admits, and that it goes with them. */
import test from 'ava';
import type { CallContext } from '../../../cloud/cloud.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { ServiceWorld } from './service-world.ts';

const SECOND_MS = 1_000;
const DONE_MS = 90 * SECOND_MS;
/** Longer than the period of comparisons. */
const RESYNC_MS = 630 * SECOND_MS;
/** Longer than a quota is waited for. */
const LATER_MS = 700 * SECOND_MS;
const PERSON: CallContext = { priority: 'warm', owner: 'person', signal: new AbortController().signal };
const ANNOTATION = 'service.beta.kubernetes.io/load-balancer-source-ranges';
const GROUPS = 'service.cloud.tencent.com/security-groups';
const PORTS = { ports: [{ port: 80, nodePort: 30_080 }] };

const ranges = (...loadBalancerSourceRanges: readonly string[]) => ({ spec: { ...PORTS, loadBalancerSourceRanges } });
const annotated = (annotations: Readonly<Record<string, string | null>>) => ({ metadata: { annotations } });

async function start(...flags: readonly string[]): Promise<ServiceWorld> {
  const world = await ServiceWorld.start({ flags });
  await world.join('n1');
  return world;
}

/** What the only security group that was made admits: `TCP 80 10.0.0.0/8`; undefined: there is none. */
function admitted(world: ServiceWorld): readonly string[] | undefined {
  const { securityGroups } = world.world.scene.host.model.state;
  const [id, ...others] = securityGroups.made.keys();
  if (others.length > 0) throw new Error(`${1 + others.length} security groups`);
  if (id === undefined) return undefined;
  return securityGroups
    .rulesOf([id])
    .map(({ protocol, port, lastPort, cidr }) => `${protocol} ${port}${lastPort ? `-${lastPort}` : ''} ${cidr}`);
}

/** Whether the only load balancer has the only security group that was made, and no other one. */
function isBound(world: ServiceWorld): boolean {
  const made = [...world.world.scene.host.model.state.securityGroups.made.keys()];
  return made.length === 1 && world.balancer().securityGroupIds.join() === made.join();
}

test('the annotation does the same, and groups that the Service names take the place of the own one', async (t) => {
  const world = await start();
  await world.create('web', { spec: PORTS, ...annotated({ [ANNOTATION]: '10.0.0.0/8' }) });
  await world.advance(DONE_MS);
  t.deepEqual([isBound(world), admitted(world)], [true, ['TCP 80 10.0.0.0/8']]);
  await world.patch('web', annotated({ [GROUPS]: 'sg-default0' }));
  await world.advance(2 * DONE_MS);
  t.deepEqual([admitted(world), world.balancer().securityGroupIds], [undefined, ['sg-default0']]);
  t.regex(world.events('ServiceRefused').join(), /not applied.*remove it, or the ranges/);
  await world.patch('web', annotated({ [GROUPS]: null }));
  await world.advance(2 * DONE_MS);
  t.deepEqual([isBound(world), admitted(world)], [true, ['TCP 80 10.0.0.0/8']], 'the ranges are exact again');
  await world.stop();
});

test('a load balancer that exists is refused, and its security groups stay', async (t) => {
  const world = await start();
  const bought = await world.buy();
  await world.advance(DONE_MS);
  const before = world.balancer();
  const existed = annotated({ 'service.kubernetes.io/tke-existed-lbid': bought });
  await world.create('web', { ...ranges('10.0.0.0/8'), ...existed });
  await world.advance(DONE_MS);
  t.regex(world.events('ServiceRefused').join(), new RegExp(`${bought} is not made for this Service`));
  t.deepEqual([world.balancer(), admitted(world)], [before, undefined]);
  await world.stop();
});

test('an own load balancer that is exchanged for one that exists leaves no security group', async (t) => {
  const world = await start();
  await world.create('web', ranges('10.0.0.0/8'));
  await world.advance(DONE_MS);
  const bought = await world.buy();
  const more = {
    'service.kubernetes.io/tke-existed-lbid': bought,
    'tke.cloud.tencent.com/allow-address-change': 'true',
  };
  await world.patch('web', { ...annotated(more), ...ranges() });
  await world.advance(LATER_MS);
  t.deepEqual([world.balancer().loadBalancerId, admitted(world)], [bought, undefined]);
  await world.stop();
});

for (const mode of ['repair', 'report'] as const) {
  test(`policies and groups that somebody else changed, with --load-balancer-drift=${mode}`, async (t) => {
    const world = await start(`--load-balancer-drift=${mode}`);
    await world.create('web', ranges('10.0.0.0/8'));
    await world.advance(DONE_MS);
    const [id = ''] = world.balancer().securityGroupIds;
    const { state } = world.world.scene.host.model;
    state.setSecurityRules(id, [{ cidr: '0.0.0.0/0', isAccepted: true }]);
    await world.world.scene.clock.run(
      world.cloud.loadBalancers.setSecurityGroups(world.balancer().loadBalancerId, ['sg-default0'], PERSON),
    );
    await world.advance(RESYNC_MS);
    const [message, ...others] = world.events('DriftFound');
    t.deepEqual(others, []);
    t.regex(message ?? '', /sourceRanges is ACCEPT ALL:ALL from 0.0.0.0\/0 and was ACCEPT TCP:80 from 10.0.0.0\/8/);
    t.regex(message ?? '', /securityGroupIds is sg-default0 and was sg-/);
    const repaired = [['TCP 80 10.0.0.0/8'], true];
    const left = [['undefined undefined 0.0.0.0/0'], false];
    t.deepEqual([admitted(world), isBound(world)], mode === 'repair' ? repaired : left);
    // What the Service asks for again is done in either mode.
    await world.patch('web', ranges('192.0.2.0/24'));
    await world.advance(DONE_MS);
    t.deepEqual(admitted(world), ['TCP 80 192.0.2.0/24']);
    await world.stop();
  });
}

test('groups that were changed while no process ran stay with --load-balancer-drift=report', async (t) => {
  const world = await start('--load-balancer-drift=report');
  await world.create('web', ranges('10.0.0.0/8'));
  // Two comparisons, so that what is in force is on record.
  await world.advance(2 * RESYNC_MS);
  t.true(world.annotation('web', 'tke.cloud.tencent.com/load-balancer-record')?.includes('settled'));
  await world.world.scene.clock.run(
    world.cloud.loadBalancers.setSecurityGroups(world.balancer().loadBalancerId, ['sg-default0'], PERSON),
  );
  await world.replace();
  await world.advance(RESYNC_MS);
  t.regex(world.events('DriftFound').join(), /securityGroupIds is sg-default0 and was sg-/);
  t.deepEqual(world.balancer().securityGroupIds, ['sg-default0']);
  await world.stop();
});

test('too many policies: an event says what to do, and the former ones stay in force', async (t) => {
  const world = await start();
  await world.create('web', ranges('10.0.0.0/8'));
  await world.advance(DONE_MS);
  const many = Array.from({ length: 101 }, (_, at) => `192.0.2.${at}/32`);
  await world.patch('web', ranges(...many));
  await world.advance(DONE_MS);
  t.regex(
    world.events('SyncLoadBalancerFailed').join(),
    /ModifySecurityGroupPolicies.*; the source ranges need a policy for each network.*name fewer and larger networks/,
  );
  t.deepEqual([isBound(world), admitted(world)], [true, ['TCP 80 10.0.0.0/8']]);
  await world.patch('web', ranges(...many.slice(1)));
  await world.advance(LATER_MS);
  t.is(admitted(world)?.length, 100);
  await world.stop();
});

/** What keeps the ranges of a Service that is there from being changed. */
const KEPT: readonly (readonly [title: string, range: string, fault: Fault | undefined])[] = [
  ['they are refused', '0.0.0.0/8', undefined],
  ['the cloud refuses their policies', '192.0.2.0/24', { kind: 'error', code: 'LimitExceeded.SecurityGroupPolicySet' }],
  ['the key has no right to security groups', '192.0.2.0/24', { kind: 'error', code: 'UnauthorizedOperation' }],
];

for (const [title, range, fault] of KEPT) {
  test(`the former policies stay, no listener is made, and targets follow while ${title}`, async (t) => {
    const world = await start();
    await world.create('web', ranges('10.0.0.0/8'));
    await world.advance(DONE_MS);
    const { faults } = world.world.scene.host;
    const actions = ['ModifySecurityGroupPolicies', 'CreateSecurityGroup', 'DeleteSecurityGroup'];
    const end = fault === undefined ? undefined : faults.add({ fault, actions });
    const second = { name: 'b', port: 81, nodePort: 30_081 };
    const spec = { ports: [{ name: 'a', ...PORTS.ports[0] }, second], loadBalancerSourceRanges: [range] };
    await world.patch('web', { spec });
    await world.advance(DONE_MS);
    const reason = fault === undefined ? 'ServiceRefused' : 'SyncLoadBalancerFailed';
    t.true(world.events(reason).length > 0);
    const ip = await world.join('n2');
    await world.advance(2 * DONE_MS);
    t.true(world.listeners()['TCP/80']?.includes(`${ip}:30080 10`));
    t.deepEqual(Object.keys(world.listeners()), ['TCP/80']);
    t.deepEqual([isBound(world), admitted(world)], [true, ['TCP 80 10.0.0.0/8']]);
    end?.();
    await world.patch('web', { spec: { ...spec, loadBalancerSourceRanges: ['192.0.2.0/24'] } });
    await world.advance(LATER_MS);
    t.deepEqual(Object.keys(world.listeners()).toSorted(), ['TCP/80', 'TCP/81']);
    t.deepEqual(admitted(world), ['TCP 80-81 192.0.2.0/24']);
    await world.stop();
  });
}

test('no more security groups: an event says what to do, and nothing listens until there is one', async (t) => {
  const world = await start();
  const { state } = world.world.scene.host.model;
  state.securityGroupQuota = 0;
  await world.create('web', ranges('10.0.0.0/8'));
  await world.advance(DONE_MS);
  t.regex(world.events('SyncLoadBalancerFailed').join(), /CreateSecurityGroup.*; raise the quota of security groups/);
  t.deepEqual(world.listeners(), {});
  t.false(world.annotation('web', 'tke.cloud.tencent.com/load-balancer-record')?.includes('sourceGroup'));
  state.securityGroupQuota = 1;
  await world.advance(LATER_MS);
  t.deepEqual([isBound(world), admitted(world)], [true, ['TCP 80 10.0.0.0/8']]);
  await world.stop();
});

test('a security group that something else has is left after an event says what to do, and the Service ends', async (t) => {
  const world = await start();
  await world.create('web', ranges('10.0.0.0/8'));
  await world.advance(DONE_MS);
  const [id = ''] = world.balancer().securityGroupIds;
  const { clock, host } = world.world.scene;
  const [eni] = host.model.state.enis.values();
  const before = eni?.securityGroupIds ?? [];
  await clock.run(world.cloud.securityGroups.replace(eni?.eniId ?? '', [...before, id], PERSON));
  await world.delete('web');
  await world.advance(DONE_MS);
  t.regex(
    world.events('DeleteLoadBalancerFailed').join(),
    /DeleteSecurityGroup.*; take the security group off what else/,
  );
  await world.advance(LATER_MS);
  const { made } = host.model.state.securityGroups;
  t.deepEqual([world.service('web'), world.balancers(), [...made.keys()]], [undefined, [], [id]]);
  await world.stop();
});
