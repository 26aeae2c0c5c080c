import { type ClbCase, testClbCases } from './clb-case.ts';
import { madeBalancer, madeListeners } from './clb-fixture.ts';

const numbers = (count: number, from: number): number[] => Array.from({ length: count }, (_, at) => from + at);

const CASES: readonly ClbCase[] = [
  {
    title: 'CreateListener: while its task runs no describe shows it and no other change is taken',
    isTimed: true,
    run: async (t, on) => {
      const LoadBalancerId = await madeBalancer(on);
      const create = { LoadBalancerId, Ports: [80, 81], Protocol: 'TCP', ListenerNames: ['a', 'b'] };
      const { ListenerIds = [] } = await on.call('CreateListener', create);
      t.is(ListenerIds.length, 2);
      t.is((await on.call('DescribeListeners', { LoadBalancerId })).TotalCount, 0);
      const [ListenerId = ''] = ListenerIds;
      const Targets = [{ Port: 80, InstanceId: 'ins-clb00001' }];
      const target = { ListenerId, Port: 80, InstanceId: 'ins-clb00001' };
      const busy = 'FailedOperation.ResourceInOperating';
      t.is(await on.refusal('CreateListener', { LoadBalancerId, Ports: [90], Protocol: 'TCP' }), busy);
      t.is(await on.refusal('ModifyListener', { LoadBalancerId, ListenerId }), busy);
      t.is(await on.refusal('DeleteListener', { LoadBalancerId, ListenerId }), busy);
      t.is(await on.refusal('DeleteLoadBalancerListeners', { LoadBalancerId }), busy);
      t.is(await on.refusal('RegisterTargets', { LoadBalancerId, ListenerId, Targets }), busy);
      t.is(await on.refusal('BatchRegisterTargets', { LoadBalancerId, Targets: [target] }), busy);
      t.is(await on.refusal('SetLoadBalancerSecurityGroups', { LoadBalancerId }), busy);
      t.is(await on.refusal('ModifyLoadBalancerAttributes', { LoadBalancerId, LoadBalancerName: 'x' }), busy);
      t.is(await on.refusal('DeleteLoadBalancer', { LoadBalancerIds: [LoadBalancerId] }), busy);
      await on.taskEnds();
      const { Listeners = [], TotalCount } = await on.call('DescribeListeners', { LoadBalancerId });
      t.is(TotalCount, 2);
      t.like(Listeners[1], {
        ListenerId: ListenerIds[1],
        ListenerName: 'b',
        Port: 81,
        Protocol: 'TCP',
        Scheduler: 'WRR',
      });
      t.like(Listeners[0]?.HealthCheck, { HealthSwitch: 1, CheckType: 'TCP', IntervalTime: 5, SourceIpType: 1 });
      t.like(Listeners[0], { IdleConnectTimeout: 900, SessionExpireTime: 0, DeregisterTargetRst: false });
    },
  },
  {
    title: 'CreateListener: 49 ports a call, 50 listeners a load balancer; TCP and UDP have ports of their own',
    run: async (t, on) => {
      const LoadBalancerId = await madeBalancer(on);
      const create = (Ports: number[], Protocol = 'TCP', more: object = {}) =>
        on.refusal('CreateListener', { LoadBalancerId, Ports, Protocol, ...more });
      t.is(await create(numbers(50, 1000)), 'InvalidParameterValue.Length');
      t.is(await create([]), 'InvalidParameterValue.Length');
      t.is(await create([0]), 'InvalidParameterValue.Range');
      t.is(await create([65_536]), 'InvalidParameterValue.Range');
      t.is(await create([80, 80]), 'InvalidParameter.PortCheckFailed');
      t.is(await create([80, 81], 'TCP', { ListenerNames: ['one'] }), 'InvalidParameterValue.Length');
      t.is(await create([80], 'TCP', { ListenerNames: ['n'.repeat(81)] }), 'InvalidParameterValue.Length');
      t.is(await create([80], 'SCTP'), 'InvalidParameterValue');
      await madeListeners(on, LoadBalancerId, numbers(46, 1000));
      await madeListeners(on, LoadBalancerId, [1046, 1047], { ListenerNames: ['same', 'same'] });
      await madeListeners(on, LoadBalancerId, [1000], { Protocol: 'UDP' });
      t.is(await create([2000, 1000]), 'InvalidParameter.PortCheckFailed', 'all of them, or none');
      t.is(await create([1000], 'HTTP'), 'InvalidParameter.PortCheckFailed');
      t.is(await create([1000], 'QUIC', { Certificate: { CertId: 'c' } }), 'InvalidParameter.PortCheckFailed');
      t.is(await create([3000, 3001]), 'LimitExceeded', 'the 50th and the 51st');
      await madeListeners(on, LoadBalancerId, [3000]);
      t.is(await create([3001]), 'LimitExceeded');
      t.is((await on.call('DescribeListeners', { LoadBalancerId })).TotalCount, 50);
      t.is((await on.call('DescribeListeners', { LoadBalancerId, Protocol: 'UDP' })).TotalCount, 1);
      t.is((await on.call('DescribeListeners', { LoadBalancerId, Port: 1000 })).TotalCount, 2);
    },
  },
  {
    title: 'CreateListener: settings that a protocol does not have, or not so, are refused',
    run: async (t, on) => {
      const LoadBalancerId = await madeBalancer(on);
      const rows: readonly (readonly [string, object, string])[] = [
        ['TCP', { SessionExpireTime: 29 }, 'InvalidParameterValue.Range'],
        ['TCP', { SessionExpireTime: 10_800 }, 'InvalidParameterValue.Range'],
        ['TCP', { IdleConnectTimeout: 9 }, 'InvalidParameterValue.Range'],
        ['TCP', { Scheduler: 'RANDOM' }, 'InvalidParameterValue'],
        ['HTTP', { Scheduler: 'WRR' }, 'InvalidParameterValue'],
        ['HTTP', { SessionExpireTime: 30 }, 'InvalidParameterValue'],
        ['HTTP', { HealthCheck: { HealthSwitch: 0 } }, 'InvalidParameterValue'],
        ['HTTPS', {}, 'MissingParameter'],
        ['TCP_SSL', {}, 'MissingParameter'],
        ['UDP', { DeregisterTargetRst: true }, 'FailedOperation'],
        ['TCP', { DeregisterTargetRst: 'true' }, 'InvalidParameter'],
        ['TCP', { HealthCheck: { CheckType: 'PING' } }, 'InvalidParameterValue'],
        ['UDP', { HealthCheck: { CheckType: 'TCP' } }, 'InvalidParameterValue'],
        ['UDP', { HealthCheck: { CheckType: 'CUSTOM' } }, 'InvalidParameterValue'],
        [
          'UDP',
          { HealthCheck: { CheckType: 'CUSTOM', ContextType: 'HEX', SendContext: 'xy', RecvContext: '00' } },
          'InvalidParameterValue',
        ],
        ['TCP', { HealthCheck: { CheckType: 'HTTP', HttpVersion: 'HTTP/1.1' } }, 'InvalidParameterValue'],
        ['TCP', { HealthCheck: { CheckType: 'HTTP', HttpCheckDomain: 'a.b' } }, 'InvalidParameterValue'],
        ['TCP', { HealthCheck: { TimeOut: 5 } }, 'InvalidParameterValue'],
        ['TCP', { HealthCheck: { IntervalTime: 301 } }, 'InvalidParameterValue.Range'],
        ['TCP', { HealthCheck: { HealthNum: 1 } }, 'InvalidParameterValue.Range'],
        ['TCP', { HealthCheck: { CheckPort: 0 } }, 'InvalidParameterValue'],
        ['TCP', { HealthCheck: { Interval: 5 } }, 'UnknownParameter'],
        ['TCP', { HealthCheck: 'on' }, 'InvalidParameter'],
        ['TCP', { SnatEnable: true }, 'UnsupportedOperation'],
        ['TCP', { EndPort: 90 }, 'UnknownParameter'],
      ];
      for (const [Protocol, more, code] of rows) {
        const request = { LoadBalancerId, Ports: [80], Protocol, ...more };
        t.is(await on.refusal('CreateListener', request), code, JSON.stringify(request));
      }
      await madeListeners(on, LoadBalancerId, [53], {
        Protocol: 'UDP',
        HealthCheck: { CheckType: 'CUSTOM', ContextType: 'HEX', SendContext: '00FF', RecvContext: '00' },
      });
      await madeListeners(on, LoadBalancerId, [443], { Protocol: 'HTTPS', SniSwitch: 1 });
    },
  },
  {
    title: 'ModifyListener: what is left out stays; protocol and port cannot change; another balancer does not have it',
    run: async (t, on) => {
      const LoadBalancerId = await madeBalancer(on);
      const HealthCheck = { HealthSwitch: 1, CheckPort: 30_080, IntervalTime: 10, TimeOut: 5 };
      const [ListenerId = ''] = await madeListeners(on, LoadBalancerId, [80], { HealthCheck, SessionExpireTime: 60 });
      const one = { LoadBalancerId, ListenerId };
      await on.done('ModifyListener', { ...one, HealthCheck: { UnHealthNum: 5 }, DeregisterTargetRst: true });
      const now = async () => (await on.call('DescribeListeners', { LoadBalancerId })).Listeners?.[0];
      t.like(await now(), { SessionExpireTime: 60, DeregisterTargetRst: true });
      t.like((await now())?.HealthCheck, { ...HealthCheck, UnHealthNum: 5 });
      await on.done('ModifyListener', { ...one, ListenerName: 'n', HealthCheck: { CheckPort: -1 } });
      t.like(await now(), { ListenerName: 'n', Port: 80 });
      t.is((await now())?.HealthCheck?.CheckPort, -1);
      t.is(await on.refusal('ModifyListener', { ...one, HealthCheck: { IntervalTime: 5 } }), 'InvalidParameterValue');
      for (const more of [{ Protocol: 'UDP' }, { Port: 81 }]) {
        t.is(await on.refusal('ModifyListener', { ...one, ...more }), 'UnknownParameter');
      }
      const other = await madeBalancer(on, 'other');
      const foreign = { LoadBalancerId: other, ListenerId };
      t.is(await on.refusal('ModifyListener', foreign), 'InvalidParameter.ListenerIdNotFound');
      t.is(await on.refusal('DeleteListener', foreign), 'InvalidParameter.ListenerIdNotFound');
    },
  },
  {
    title: 'DeleteLoadBalancerListeners: without ids, or with none in the list, it deletes them all',
    run: async (t, on) => {
      const LoadBalancerId = await madeBalancer(on);
      const count = async () => (await on.call('DescribeListeners', { LoadBalancerId })).TotalCount;
      const [one = '', two = '', three = ''] = await madeListeners(on, LoadBalancerId, [1, 2, 3]);
      const ListenerIds = [one, 'lbl-none'];
      const refused = await t.throwsAsync(on.call('DeleteLoadBalancerListeners', { LoadBalancerId, ListenerIds }));
      t.regex(String(refused), /InvalidParameter: .*some ListenerId \["lbl-none"\] not found/);
      t.is(await count(), 3, 'none of them went');
      await on.done('DeleteLoadBalancerListeners', { LoadBalancerId, ListenerIds: [one] });
      await on.done('DeleteListener', { LoadBalancerId, ListenerId: two });
      t.deepEqual(
        (await on.call('DescribeListeners', { LoadBalancerId })).Listeners?.map((listener) => listener.ListenerId),
        [three],
      );
      await on.done('DeleteLoadBalancerListeners', { LoadBalancerId });
      t.is(await count(), 0);
      await madeListeners(on, LoadBalancerId, [1, 2]);
      await on.done('DeleteLoadBalancerListeners', { LoadBalancerId, ListenerIds: [] });
      t.is(await count(), 0);
      const many = Array.from({ length: 21 }, (_, at) => `lbl-${at}`);
      t.is(
        await on.refusal('DeleteLoadBalancerListeners', { LoadBalancerId, ListenerIds: many }),
        'InvalidParameterValue.Length',
      );
    },
  },
];

testClbCases(CASES);
