import type { ExecutionContext } from 'ava';
import { type ClbCase, testClbCases } from './clb-case.ts';
import { eniIps, INSTANCES, madeBalancer, madeListeners, type TestClb, VPC } from './clb-fixture.ts';

/** A load balancer with listeners on two ports. */
async function twoListeners(on: TestClb): Promise<{ readonly lb: string; readonly one: string; readonly two: string }> {
  const lb = await madeBalancer(on);
  const [one = '', two = ''] = await madeListeners(on, lb, [80, 81]);
  return { lb, one, two };
}

/** `ip:port=weight` of each target of a listener. */
async function bound(on: TestClb, LoadBalancerId: string, ListenerId: string): Promise<readonly string[]> {
  const { Listeners = [] } = await on.call('DescribeTargets', { LoadBalancerId, ListenerIds: [ListenerId] });
  return (Listeners[0]?.Targets ?? []).map((one) => `${one.PrivateIpAddresses?.[0]}:${one.Port}=${one.Weight}`);
}

function healthOf(t: ExecutionContext, on: TestClb, LoadBalancerId: string) {
  return async (): Promise<readonly (readonly [string, boolean])[]> => {
    const { LoadBalancers = [] } = await on.call('DescribeTargetHealth', { LoadBalancerIds: [LoadBalancerId] });
    t.is(LoadBalancers.length, 1);
    const targets = LoadBalancers[0]?.Listeners?.[0]?.Rules?.[0]?.Targets ?? [];
    return targets.map((one) => [one.HealthStatusDetail ?? '', one.HealthStatus ?? false] as const);
  };
}

const CASES: readonly ClbCase[] = [
  {
    title:
      'RegisterTargets: an instance by its primary address, a Pod by that of its ENI; not before its task has ended',
    isTimed: true,
    run: async (t, on) => {
      const { lb, one } = await twoListeners(on);
      const [EniIp = ''] = eniIps(on.host.model, 1);
      const Targets = [
        { Port: 30_080, InstanceId: INSTANCES[1] },
        { Port: 8080, EniIp, Weight: 0, Tag: 'mine' },
      ];
      await on.call('RegisterTargets', { LoadBalancerId: lb, ListenerId: one, Targets });
      t.deepEqual(await bound(on, lb, one), []);
      await on.taskEnds();
      const { Listeners = [] } = await on.call('DescribeTargets', { LoadBalancerId: lb });
      t.is(Listeners.length, 2);
      const [node, pod] = Listeners[0]?.Targets ?? [];
      t.like(node, { Type: 'CVM', InstanceId: INSTANCES[1], Port: 30_080, Weight: 10, Zone: 'ap-guangzhou-3' });
      t.like(pod, { Type: 'ENI', InstanceId: INSTANCES[0], PrivateIpAddresses: [EniIp], Weight: 0, Tag: 'mine' });
    },
  },
  {
    title: 'RegisterTargets: what is bound already, what is no address of the VPC, and what says too little is refused',
    run: async (t, on) => {
      const { lb, one } = await twoListeners(on);
      const [EniIp = '', unbound = ''] = eniIps(on.host.model, 2);
      const refused = (Targets: object[], more: object = {}) =>
        on.refusal('RegisterTargets', {
          LoadBalancerId: lb,
          ListenerId: one,
          // What a client might send, whether its types allow it or not.
          Targets: Targets as { Port: number }[],
          ...more,
        });
      await on.done('RegisterTargets', { LoadBalancerId: lb, ListenerId: one, Targets: [{ Port: 80, EniIp }] });
      const other = { Port: 81, EniIp };
      t.is(await refused([{ Port: 80, EniIp }]), 'InvalidParameterValue.Duplicate');
      t.is(await refused([other, { Port: 80, EniIp, Weight: 5 }]), 'InvalidParameterValue.Duplicate');
      t.is(await refused([other, other]), 'InvalidParameterValue.Duplicate', 'twice in one call');
      t.is(await refused([{ Port: 80 }]), 'InvalidParameter');
      t.is(await refused([{ Port: 80, EniIp, InstanceId: INSTANCES[0] }]), 'InvalidParameter');
      t.is(await refused([{ EniIp }]), 'MissingParameter');
      t.is(await refused([{ Port: 0, EniIp }]), 'InvalidParameterValue.Range');
      t.is(await refused([{ Port: '80', EniIp }]), 'InvalidParameter');
      t.is(await refused([{ ...other, Weight: 101 }]), 'InvalidParameterValue.Range');
      t.is(await refused([{ ...other, Zone: 'a' }]), 'UnknownParameter');
      t.is(await refused([{ Port: 80, InstanceId: 'ins-missing0' }]), 'InvalidParameterValue');
      t.is(await refused([{ Port: 80, EniIp: '172.16.0.9' }]), 'InvalidParameterValue', 'a Pod of a node network');
      t.is(await refused([{ Port: 80, EniIp: 'ten' }]), 'InvalidParameterValue');
      t.is(await refused([]), 'InvalidParameterValue.Length');
      t.is(await refused(Array.from({ length: 21 }, () => other)), 'InvalidParameterValue.Length');
      t.is(await refused([other], { ListenerId: 'lbl-none' }), 'InvalidParameter.ListenerIdNotFound');
      t.is(
        await refused([other], { LoadBalancerId: await madeBalancer(on, 'x') }),
        'InvalidParameter.ListenerIdNotFound',
      );
      t.is(await refused([other], { LoadBalancerId: 'lb-none' }), 'InvalidParameter.LBIdNotFound');
      const eni = on.host.model.state.enisOf(INSTANCES[0])[0];
      t.truthy(eni);
      const ip = eni?.ips.get(unbound);
      if (ip !== undefined) ip.state = 'PENDING';
      t.is(await refused([{ Port: 80, EniIp: unbound }]), 'InvalidParameterValue', 'not bound to the instance yet');
      t.deepEqual(await bound(on, lb, one), [`${EniIp}:80=10`], 'the same target by instance and by address is one');
      const node = on.host.model.state.enisOf(INSTANCES[1])[0]?.ips.keys().next().value ?? '';
      await on.done('RegisterTargets', { LoadBalancerId: lb, ListenerId: one, Targets: [{ Port: 1, EniIp: node }] });
      t.is(await refused([{ Port: 1, InstanceId: INSTANCES[1] }]), 'InvalidParameterValue.Duplicate');
    },
  },
  {
    title: 'RegisterTargets: Pods of node networks where the account takes them, other private addresses with SnatPro',
    spec: { takesRoutedTargets: true },
    run: async (t, on) => {
      const { lb, one } = await twoListeners(on);
      on.host.model.state.addGlobalRoute({ vpcId: VPC, cidr: '172.16.1.0/24', gatewayIp: '10.0.0.2', description: '' });
      const register = (EniIp: string) => ({ LoadBalancerId: lb, ListenerId: one, Targets: [{ Port: 80, EniIp }] });
      await on.done('RegisterTargets', register('172.16.1.7'));
      t.is(await on.refusal('RegisterTargets', register('172.16.2.7')), 'InvalidParameterValue');
      await on.done('ModifyLoadBalancerAttributes', { LoadBalancerId: lb, SnatPro: true });
      await on.done('RegisterTargets', register('172.16.2.7'));
      t.is(await on.refusal('RegisterTargets', register('8.8.8.8')), 'InvalidParameterValue');
      const { Listeners = [] } = await on.call('DescribeTargets', { LoadBalancerId: lb });
      t.deepEqual(
        Listeners[0]?.Targets?.map(({ Type }) => Type),
        ['GLOBALROUTE', 'CCN'],
      );
    },
  },
  {
    title: 'BatchRegisterTargets: at once, over many listeners; what a listener refuses is a field of the answer',
    run: async (t, on) => {
      const { lb, one, two } = await twoListeners(on);
      const [a = '', b = ''] = eniIps(on.host.model, 2);
      const target = (ListenerId: string, EniIp: string, Port = 80) => ({ ListenerId, EniIp, Port });
      const register = (Targets: ReturnType<typeof target>[]) =>
        on.call('BatchRegisterTargets', { LoadBalancerId: lb, Targets });
      t.like(await register([target(one, a), target(two, a), target(two, b)]), { FailListenerIdSet: [], Message: '' });
      t.deepEqual(await bound(on, lb, two), [`${a}:80=10`, `${b}:80=10`]);
      const partial = await register([target(one, b), target(two, '10.9.9.9'), target(two, b, 81)]);
      t.deepEqual(partial.FailListenerIdSet, [two]);
      t.regex(partial.Message ?? '', /10\.9\.9\.9/);
      t.deepEqual(await bound(on, lb, one), [`${a}:80=10`, `${b}:80=10`]);
      t.is((await bound(on, lb, two)).length, 2, 'all targets of a listener, or none');
      t.deepEqual((await register([target(one, a)])).FailListenerIdSet, [one], 'bound already');
      const refused = (Targets: object[]) =>
        on.refusal('BatchRegisterTargets', { LoadBalancerId: lb, Targets: Targets as ReturnType<typeof target>[] });
      t.is(await refused([target(one, b, 82), target('lbl-none', b)]), 'InvalidParameter');
      t.is((await bound(on, lb, one)).length, 2, 'nothing was done');
      t.is(
        await refused(Array.from({ length: 501 }, (_, at) => target(one, a, at + 1))),
        'InvalidParameterValue.Length',
      );
      t.is(await refused([]), 'InvalidParameterValue.Length');
      t.is(await refused([{ ...target(one, a), Type: 'ENI' }]), 'UnknownParameter', 'it has no Type here');
      on.host.faults.add({ fault: { kind: 'refuse-one' }, times: 1 });
      const injected = await register([target(one, a, 90), target(two, a, 90)]);
      t.deepEqual(injected.FailListenerIdSet, [two]);
      const undo = [target(one, a, 90), target(two, a, 90)];
      const gone = await on.call('BatchDeregisterTargets', { LoadBalancerId: lb, Targets: undo });
      t.deepEqual(gone.FailListenerIdSet, [two], 'it was not bound');
      t.is((await bound(on, lb, one)).length, 2);
    },
  },
  {
    title:
      'BatchRegisterTargets: 100 targets a listener by default; one too many and the whole listener has none of them',
    run: async (t, on) => {
      const { lb, one, two } = await twoListeners(on);
      const ips = eniIps(on.host.model, 101);
      const Targets = [
        ...ips.map((EniIp) => ({ ListenerId: one, EniIp, Port: 80 })),
        ...ips.slice(0, 100).map((EniIp) => ({ ListenerId: two, EniIp, Port: 80 })),
      ];
      const answer = await on.call('BatchRegisterTargets', { LoadBalancerId: lb, Targets });
      t.deepEqual(answer.FailListenerIdSet, [one]);
      t.regex(answer.Message ?? '', /LimitExceeded.* 100/);
      t.is((await bound(on, lb, one)).length, 0);
      t.is((await bound(on, lb, two)).length, 100);
      const last = [{ EniIp: ips[100] ?? '', Port: 80 }];
      t.is(
        await on.refusal('RegisterTargets', { LoadBalancerId: lb, ListenerId: two, Targets: last }),
        'LimitExceeded',
      );
      on.host.model.state.clb.limits.targets = 200;
      await on.done('RegisterTargets', { LoadBalancerId: lb, ListenerId: two, Targets: last });
      t.is((await bound(on, lb, two)).length, 101);
      const { LoadBalancerSet = [] } = await on.call('DescribeLoadBalancers', { AdditionalFields: ['TargetCount'] });
      t.is(LoadBalancerSet[0]?.TargetCount, 101);
    },
  },
  {
    title: 'ModifyTargetWeight and BatchModifyTargetWeight: the weight of a target goes before that of the rule',
    run: async (t, on) => {
      const { lb, one, two } = await twoListeners(on);
      const [a = '', b = ''] = eniIps(on.host.model, 2);
      const both = [a, b].map((EniIp) => ({ EniIp, Port: 80 }));
      const targets = [one, two].flatMap((ListenerId) => both.map((target) => ({ ListenerId, ...target })));
      await on.call('BatchRegisterTargets', { LoadBalancerId: lb, Targets: targets });
      const base = { LoadBalancerId: lb, ListenerId: one };
      await on.done('ModifyTargetWeight', { ...base, Targets: both.slice(0, 1), Weight: 0 });
      t.deepEqual(await bound(on, lb, one), [`${a}:80=0`, `${b}:80=10`]);
      const Targets = [
        { EniIp: a, Port: 80, Weight: 7 },
        { EniIp: b, Port: 80 },
      ];
      await on.done('BatchModifyTargetWeight', {
        LoadBalancerId: lb,
        ModifyList: [one, two].map((ListenerId) => ({ ListenerId, Targets, Weight: 100 })),
      });
      t.deepEqual(await bound(on, lb, two), [`${a}:80=7`, `${b}:80=100`]);
      t.deepEqual(await bound(on, lb, one), await bound(on, lb, two));
      const batch = (ModifyList: object[]) =>
        on.refusal('BatchModifyTargetWeight', {
          LoadBalancerId: lb,
          ModifyList: ModifyList as { ListenerId: string; Targets: { Port: number }[] }[],
        });
      t.is(await batch([{ ListenerId: one, Targets: both }]), 'MissingParameter');
      t.is(await batch([{ ListenerId: one, Targets: both, Weight: 101 }]), 'InvalidParameterValue.Range');
      t.is(await batch([{ ListenerId: one, Targets: [{ EniIp: a, Port: 99 }], Weight: 1 }]), 'InvalidParameterValue');
      t.is(await batch([]), 'InvalidParameterValue.Length');
      const rule = (count: number) => ({
        ListenerId: one,
        Weight: 1,
        Targets: Array.from({ length: count }, () => both[0] ?? {}),
      });
      t.is(await batch([rule(51)]), 'InvalidParameterValue.Length');
      t.is(await batch(Array.from({ length: 101 }, () => rule(1))), 'InvalidParameterValue.Length');
      t.is(await batch(Array.from({ length: 11 }, () => rule(50))), 'InvalidParameterValue.Length', 'more than 500');
    },
  },
  {
    title: 'DeregisterTargets: also of an instance that is terminated and of an address that is no ENI’s any more',
    run: async (t, on) => {
      const { lb, one } = await twoListeners(on);
      const { state } = on.host.model;
      const [EniIp = ''] = eniIps(on.host.model, 1);
      const Targets = [
        { Port: 1, InstanceId: INSTANCES[1] },
        { Port: 2, EniIp },
        { Port: 3, InstanceId: INSTANCES[0] },
      ];
      const base = { LoadBalancerId: lb, ListenerId: one };
      await on.done('RegisterTargets', { ...base, Targets });
      state.enisOf(INSTANCES[0])[0]?.ips.delete(EniIp);
      t.is((await bound(on, lb, one)).length, 3, 'what is bound stays bound when its address goes');
      await on.done('DeregisterTargets', { ...base, Targets: [{ Port: 2, EniIp }] });
      state.removeInstance(INSTANCES[1]);
      t.is((await bound(on, lb, one)).length, 1, 'an instance takes its bindings along');
      t.is(await on.refusal('DeregisterTargets', { ...base, Targets: [{ Port: 2, EniIp }] }), 'InvalidParameterValue');
      await on.done('DeregisterTargets', { ...base, Targets: [{ Port: 3, InstanceId: INSTANCES[0] }] });
      t.deepEqual(await bound(on, lb, one), []);
    },
  },
  {
    title: 'DescribeTargets and DescribeLBListeners: by address and tag, and which load balancers have an address',
    run: async (t, on) => {
      const { lb, one, two } = await twoListeners(on);
      const [a = '', b = ''] = eniIps(on.host.model, 2);
      const Targets = [
        { ListenerId: one, EniIp: a, Port: 80, Tag: 'x' },
        { ListenerId: two, EniIp: a, Port: 81, Tag: 'y' },
        { ListenerId: two, EniIp: b, Port: 81, Tag: 'x' },
      ];
      await on.call('BatchRegisterTargets', { LoadBalancerId: lb, Targets });
      const find = async (Name: string, value: string) => {
        const Filters = [{ Name, Values: [value] }];
        const { Listeners = [] } = await on.call('DescribeTargets', { LoadBalancerId: lb, Filters });
        return Listeners.map((listener) => listener.Targets?.length);
      };
      t.deepEqual(await find('private-ip-address', a), [1, 1]);
      t.deepEqual(await find('tag', 'x'), [1, 1]);
      t.deepEqual(await find('private-ip-address', b), [0, 1]);
      const reverse = await on.call('DescribeLBListeners', { Backends: [{ VpcId: VPC, PrivateIp: b }] });
      t.is(reverse.LoadBalancers.length, 1);
      t.like(reverse.LoadBalancers[0]?.Listeners?.[0], { ListenerId: two, Port: 81 });
      const none = await on.call('DescribeLBListeners', { Backends: [{ VpcId: VPC, PrivateIp: '10.0.99.1' }] });
      t.deepEqual(none.LoadBalancers, []);
      const unknown = { LoadBalancerId: lb, ListenerIds: [one, 'lbl-none'] };
      t.is(await on.refusal('DescribeTargets', unknown), 'InvalidParameter');
      const many = Array.from({ length: 21 }, (_, at) => `lbl-${at}`);
      t.is(
        await on.refusal('DescribeTargets', { LoadBalancerId: lb, ListenerIds: many }),
        'InvalidParameterValue.Length',
      );
    },
  },
  {
    title: 'targets of a listener of layer 7 need a rule; a batch names the rule of each',
    run: async (t, on) => {
      const lb = await madeBalancer(on);
      const [ListenerId = ''] = await madeListeners(on, lb, [80], { Protocol: 'HTTP' });
      const target = { Port: 1, InstanceId: INSTANCES[0] };
      const code = 'InvalidParameter.LocationNotFound';
      const single = { LoadBalancerId: lb, ListenerId, Targets: [target] };
      t.is(await on.refusal('RegisterTargets', single), code);
      t.is(await on.refusal('RegisterTargets', { ...single, LocationId: 'loc-00000001' }), code);
      t.is(await on.refusal('ModifyTargetWeight', { ...single, Weight: 1 }), code);
      const Targets = [{ ...target, ListenerId }];
      t.is(await on.refusal('BatchRegisterTargets', { LoadBalancerId: lb, Targets }), code);
      const Rules = [{ Url: '/a' }, { Url: '/b' }];
      const { LocationIds = [] } = await on.done('CreateRule', { LoadBalancerId: lb, ListenerId, Rules });
      const ofEach = LocationIds.map((LocationId) => ({ ...target, ListenerId, LocationId }));
      await on.call('BatchRegisterTargets', { LoadBalancerId: lb, Targets: ofEach });
      const Filters = [{ Name: 'location-id', Values: LocationIds.slice(0, 1) }];
      const { Listeners = [] } = await on.call('DescribeTargets', { LoadBalancerId: lb, Filters });
      t.deepEqual(
        Listeners[0]?.Rules?.map((rule) => rule.Targets?.length),
        [1, 0],
      );
      on.host.model.state.removeInstance(INSTANCES[0]);
      const after = await on.call('DescribeTargets', { LoadBalancerId: lb });
      t.true(after.Listeners?.[0]?.Rules?.every((rule) => rule.Targets?.length === 0));
    },
  },
  {
    title: 'DescribeTargetHealth: unknown at first, alive when its check could have succeeded, closed without a check',
    isTimed: true,
    run: async (t, on) => {
      const { lb, one, two } = await twoListeners(on);
      const [EniIp = ''] = eniIps(on.host.model, 1);
      const Targets = [{ Port: 80, EniIp }];
      const base = { LoadBalancerId: lb, ListenerId: one };
      const health = healthOf(t, on, lb);
      await on.done('RegisterTargets', { ...base, Targets });
      t.deepEqual(await health(), [['Unknown', false]]);
      await on.sleep(16_000);
      t.deepEqual(await health(), [['Alive', true]], '3 checks of 5 s');
      on.host.model.state.clb.health.say(EniIp, false);
      t.deepEqual(await health(), [['Dead', false]]);
      on.host.model.state.clb.health.say(EniIp, undefined);
      await on.done('DeregisterTargets', { ...base, Targets });
      await on.done('RegisterTargets', { ...base, Targets });
      t.deepEqual(await health(), [['Unknown', false]], 'registered again');
      await on.done('ModifyListener', { ...base, HealthCheck: { HealthSwitch: 0 } });
      t.deepEqual(await health(), [['Close', true]]);
      const of = await on.call('DescribeTargetHealth', { LoadBalancerIds: [lb], ListenerIds: [two] });
      t.is(of.LoadBalancers?.[0]?.Listeners?.length, 1);
      t.is(await on.refusal('DescribeTargetHealth', { LoadBalancerIds: ['lb-none'] }), 'InvalidParameter.LBIdNotFound');
      const many = Array.from({ length: 31 }, (_, at) => `lb-${at}`);
      t.is(await on.refusal('DescribeTargetHealth', { LoadBalancerIds: many }), 'InvalidParameterValue.Length');
    },
  },
];

testClbCases(CASES);
