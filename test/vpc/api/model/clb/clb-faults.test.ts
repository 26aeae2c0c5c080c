import { type ClbCase, testClbCases } from './clb-case.ts';
import { INSTANCES, madeBalancer, madeListeners } from './clb-fixture.ts';

const CASES: readonly ClbCase[] = [
  {
    title: 'an answer that is lost: what was asked for is done all the same',
    run: async (t, on) => {
      const LoadBalancerId = await madeBalancer(on);
      const fault = { kind: 'reset', after: true } as const;
      on.host.faults.add({ fault, actions: ['CreateListener', 'BatchRegisterTargets'], times: 2 });
      const create = { LoadBalancerId, Ports: [80], Protocol: 'TCP' };
      t.is(await on.refusal('CreateListener', create), 'reset');
      await on.taskEnds();
      t.is(await on.refusal('CreateListener', create), 'reset', 'the second is lost too, and was refused');
      const { Listeners = [] } = await on.call('DescribeListeners', { LoadBalancerId });
      t.is(Listeners.length, 1);
      on.host.faults.add({ fault, actions: ['BatchRegisterTargets'], times: 1 });
      const Targets = [{ ListenerId: Listeners[0]?.ListenerId ?? '', Port: 80, InstanceId: INSTANCES[0] }];
      t.is(await on.refusal('BatchRegisterTargets', { LoadBalancerId, Targets }), 'reset');
      const again = await on.call('BatchRegisterTargets', { LoadBalancerId, Targets });
      t.is(again.FailListenerIdSet?.length, 1, 'bound already');
    },
  },
  {
    title: 'a task that fails has no effect, though its ids were answered; one that is never known has none either',
    run: async (t, on) => {
      const LoadBalancerId = await madeBalancer(on);
      for (const fate of ['fail', 'vanish'] as const) {
        on.host.faults.add({ fault: { kind: 'task', fate }, actions: ['CreateListener'], times: 1 });
        const answer = await on.call('CreateListener', { LoadBalancerId, Ports: [80], Protocol: 'TCP' });
        t.is(answer.ListenerIds?.length, 1);
        await on.taskEnds();
        const TaskId = answer.RequestId ?? '';
        if (fate === 'vanish') t.is(await on.refusal('DescribeTaskStatus', { TaskId }), 'ResourceNotFound');
        else t.like(await on.call('DescribeTaskStatus', { TaskId }), { Status: 1 });
        t.is((await on.call('DescribeListeners', { LoadBalancerId })).TotalCount, 0);
      }
      await madeListeners(on, LoadBalancerId, [80]);
      on.host.faults.add({ fault: { kind: 'task', fate: 'fail' }, actions: ['DeleteLoadBalancer'], times: 1 });
      await t.throwsAsync(on.done('DeleteLoadBalancer', { LoadBalancerIds: [LoadBalancerId] }));
      t.is(
        (await on.call('DescribeListeners', { LoadBalancerId })).TotalCount,
        1,
        'it is as it was, and takes changes',
      );
      await on.done('DeleteLoadBalancer', { LoadBalancerIds: [LoadBalancerId] });
    },
  },
  {
    title: 'a describe that is behind answers what was: of balancers, listeners and targets',
    isTimed: true,
    run: async (t, on) => {
      const LoadBalancerId = await madeBalancer(on);
      await on.sleep(10_000);
      const [ListenerId = ''] = await madeListeners(on, LoadBalancerId, [80]);
      const Targets = [{ ListenerId, Port: 80, InstanceId: INSTANCES[0] }];
      await on.call('BatchRegisterTargets', { LoadBalancerId, Targets });
      const stop = on.host.faults.add({ fault: { kind: 'stale', ms: 8_000 }, actions: ['Describe*'] });
      t.is((await on.call('DescribeListeners', { LoadBalancerId })).TotalCount, 0);
      t.deepEqual((await on.call('DescribeTargets', { LoadBalancerId })).Listeners, []);
      await on.sleep(8_000);
      t.is((await on.call('DescribeTargets', { LoadBalancerId })).Listeners?.[0]?.Targets?.length, 1);
      await on.done('DeleteLoadBalancer', { LoadBalancerIds: [LoadBalancerId] });
      t.is((await on.call('DescribeLoadBalancers', {})).TotalCount, 1, 'it is gone, and described for a while');
      stop();
      t.is((await on.call('DescribeLoadBalancers', {})).TotalCount, 0);
    },
  },
  {
    title: 'more calls a second than an API takes are refused without effect',
    run: async (t, on) => {
      const LoadBalancerId = await madeBalancer(on);
      on.host.faults.add({
        fault: { kind: 'error', code: 'RequestLimitExceeded' },
        actions: ['CreateListener'],
        times: 1,
      });
      const create = { LoadBalancerId, Ports: [80], Protocol: 'TCP' };
      t.is(await on.refusal('CreateListener', create), 'RequestLimitExceeded');
      await on.done('CreateListener', create);
    },
  },
];

testClbCases(CASES);
