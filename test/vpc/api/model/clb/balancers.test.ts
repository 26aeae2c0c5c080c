import { type ClbCase, testClbCases } from './clb-case.ts';
import { eniIps, madeBalancer, madeListeners, SUBNET, VPC } from './clb-fixture.ts';

const INTERNAL = { LoadBalancerType: 'INTERNAL', VpcId: VPC, SubnetId: SUBNET } as const;
const OPEN = { LoadBalancerType: 'OPEN', VpcId: VPC } as const;

const CASES: readonly ClbCase[] = [
  {
    title: 'CreateLoadBalancer: answers null in the place of ids, which come with the end of the task',
    isTimed: true,
    run: async (t, on) => {
      const Tags = [{ TagKey: 'tke-clusterId', TagValue: 'cls-1' }];
      const made = await on.call('CreateLoadBalancer', { ...INTERNAL, LoadBalancerName: 'a', Tags });
      t.is(made.LoadBalancerIds ?? null, null);
      t.regex(made.DealName ?? '', /^\d+$/);
      const { LoadBalancerSet = [] } = await on.call('DescribeLoadBalancers', {});
      t.like(LoadBalancerSet[0], { Status: 0, LoadBalancerVips: [], Tags }, 'tags are there from the first moment');
      const early = await on.call('DescribeTaskStatus', { TaskId: made.RequestId ?? '' });
      t.like(early, { Status: 2, LoadBalancerIds: undefined });
      await on.taskEnds();
      const late = await on.call('DescribeTaskStatus', { DealName: made.DealName ?? '' });
      t.is(late.Status, 0);
      const ready = await on.call('DescribeLoadBalancers', { LoadBalancerIds: late.LoadBalancerIds ?? [] });
      t.like(ready.LoadBalancerSet?.[0], { Status: 1, LoadBalancerName: 'a', LoadBalancerType: 'INTERNAL', Tags });
      t.regex(ready.LoadBalancerSet?.[0]?.LoadBalancerVips?.[0] ?? '', /^10\.0\./);
    },
  },
  {
    title: 'CreateLoadBalancer: a name that exists is replaced without a word',
    run: async (t, on) => {
      await madeBalancer(on, 'same');
      const second = await madeBalancer(on, 'same');
      const { LoadBalancerSet = [] } = await on.call('DescribeLoadBalancers', { LoadBalancerIds: [second] });
      t.regex(LoadBalancerSet[0]?.LoadBalancerName ?? '', /^CLB-/);
      t.is((await on.call('DescribeLoadBalancers', { LoadBalancerName: 'same' })).TotalCount, 1);
    },
  },
  {
    title:
      'CreateLoadBalancer: the same token makes one; with other parameters it is refused; a failed order uses it up',
    run: async (t, on) => {
      const request = { ...INTERNAL, LoadBalancerName: 'once', ClientToken: 'uid-1' };
      await on.done('CreateLoadBalancer', request);
      await on.done('CreateLoadBalancer', request);
      t.is((await on.call('DescribeLoadBalancers', {})).TotalCount, 1);
      t.is(
        await on.refusal('CreateLoadBalancer', { ...request, LoadBalancerName: 'other' }),
        'UnsupportedOperation.IdempotentParameterMismatch',
      );
      t.is(
        await on.refusal('CreateLoadBalancer', { ...request, ClientToken: 'x'.repeat(65) }),
        'InvalidParameterValue.Length',
      );
      on.host.faults.add({ fault: { kind: 'task', fate: 'fail' }, actions: ['CreateLoadBalancer'], times: 1 });
      const failing = { ...request, ClientToken: 'uid-2' };
      await t.throwsAsync(on.done('CreateLoadBalancer', failing), { message: /failed/ });
      t.is(await on.refusal('CreateLoadBalancer', failing), 'InvalidParameter.ClientTokenLimitExceeded');
      t.is((await on.call('DescribeLoadBalancers', {})).TotalCount, 1);
    },
  },
  {
    title: 'CreateLoadBalancer: public ones have a domain in the place of an address where the account has only those',
    spec: { hasOnlyDomains: true },
    run: async (t, on) => {
      const id = await madeBalancer(on, 'open', { LoadBalancerType: 'OPEN', SubnetId: undefined });
      const inner = await madeBalancer(on, 'inner');
      const { LoadBalancerSet = [] } = await on.call('DescribeLoadBalancers', { LoadBalancerIds: [id, inner] });
      const of = (one: string) => LoadBalancerSet.find(({ LoadBalancerId }) => LoadBalancerId === one);
      t.deepEqual(of(id)?.LoadBalancerVips, []);
      t.regex(of(id)?.LoadBalancerDomain ?? '', /\.clb\./);
      t.is(of(inner)?.LoadBalancerVips?.length, 1);
    },
  },
  {
    title: 'CreateLoadBalancer: quotas by type, tags, subnet, VPC and address are checked before anything is made',
    spec: { limits: { internalBalancers: 2, openBalancers: 1 } },
    run: async (t, on) => {
      t.is(await on.refusal('CreateLoadBalancer', { ...INTERNAL, Number: 3 }), 'LimitExceeded');
      t.is(await on.refusal('CreateLoadBalancer', { ...INTERNAL, VpcId: 'vpc-others00' }), 'InvalidParameterValue');
      t.is(await on.refusal('CreateLoadBalancer', { ...OPEN, SubnetId: SUBNET }), 'InvalidParameter.FormatError');
      t.is(
        await on.refusal('CreateLoadBalancer', { LoadBalancerType: 'INTERNAL', VpcId: VPC }),
        'InvalidParameter.FormatError',
      );
      t.is(await on.refusal('CreateLoadBalancer', { ...INTERNAL, SubnetId: 'subnet-none' }), 'ResourceNotFound');
      t.is(
        await on.refusal('CreateLoadBalancer', { ...INTERNAL, LoadBalancerName: 'n'.repeat(81) }),
        'InvalidParameterValue.Length',
      );
      const Tags = Array.from({ length: 21 }, (_, at) => ({ TagKey: `k${at}`, TagValue: '' }));
      t.is(await on.refusal('CreateLoadBalancer', { ...INTERNAL, Tags }), 'InvalidParameterValue.Length');
      const twice = ['a', 'b'].map((TagValue) => ({ TagKey: 'k', TagValue }));
      t.is(await on.refusal('CreateLoadBalancer', { ...INTERNAL, Tags: twice }), 'InvalidParameterValue.Duplicate');
      t.is((await on.call('DescribeLoadBalancers', {})).TotalCount, 0);
      await on.done('CreateLoadBalancer', { ...INTERNAL, Vip: '10.0.0.77' });
      t.is(await on.refusal('CreateLoadBalancer', { ...INTERNAL, Vip: '10.0.0.77' }), 'ResourceInUse');
      t.is(await on.refusal('CreateLoadBalancer', { ...INTERNAL, Vip: '10.1.0.1' }), 'InvalidParameterValue.Range');
      await madeBalancer(on, 'open', { LoadBalancerType: 'OPEN', SubnetId: undefined });
      t.is(await on.refusal('CreateLoadBalancer', OPEN), 'LimitExceeded');
      const { QuotaSet = [] } = await on.call('DescribeQuota', {});
      const row = (id: string) => QuotaSet.find(({ QuotaId }) => QuotaId === id);
      t.like(row('TOTAL_OPEN_CLB_QUOTA'), { QuotaCurrent: 1, QuotaLimit: 1 });
      t.like(row('TOTAL_INTERNAL_CLB_QUOTA'), { QuotaCurrent: 1, QuotaLimit: 2 });
      t.like(row('TOTAL_TARGET_BIND_QUOTA'), { QuotaCurrent: null, QuotaLimit: 100 });
    },
  },
  {
    title: 'DescribeLoadBalancers: selects by tag, type, name and address, the newest first, by pages',
    run: async (t, on) => {
      const tagged = (key: string, value: string) => ({ Tags: [{ TagKey: key, TagValue: value }] });
      const one = await madeBalancer(on, 'one', tagged('owner', 'a'));
      const two = await madeBalancer(on, 'two', tagged('owner', 'b'));
      const three = await madeBalancer(on, 'three', { LoadBalancerType: 'OPEN', SubnetId: undefined });
      const ids = async (request: object) =>
        ((await on.call('DescribeLoadBalancers', request)).LoadBalancerSet ?? []).map((lb) => lb.LoadBalancerId);
      t.deepEqual(await ids({}), [three, two, one]);
      t.deepEqual(await ids({ OrderType: 0 }), [one, two, three]);
      t.deepEqual(await ids({ Offset: 1, Limit: 1 }), [two]);
      t.deepEqual(await ids({ Filters: [{ Name: 'tag:owner', Values: ['a'] }] }), [one]);
      t.deepEqual(await ids({ Filters: [{ Name: 'tag-key', Values: ['owner'] }] }), [two, one]);
      t.deepEqual(await ids({ LoadBalancerType: 'OPEN' }), [three]);
      t.deepEqual(await ids({ LoadBalancerName: 'o' }), [two, one]);
      t.deepEqual(await ids({ LoadBalancerIds: [one, 'lb-missing0'] }), [one]);
      t.deepEqual(await ids({ VpcId: 'vpc-others00' }), []);
      t.is(await on.refusal('DescribeLoadBalancers', { Limit: 101 }), 'InvalidParameterValue.Range');
      const Filters = [{ Name: 'vpc-id', Values: [VPC] }];
      t.is(await on.refusal('DescribeLoadBalancers', { Filters }), 'InvalidParameterValue.InvalidFilter');
      const many = Array.from({ length: 21 }, (_, at) => `lb-${at}`);
      t.is(await on.refusal('DescribeLoadBalancers', { LoadBalancerIds: many }), 'InvalidParameterValue.Length');
    },
  },
  {
    title: 'ModifyLoadBalancerAttributes and SetLoadBalancerSecurityGroups: the one by a task, the other at once',
    isTimed: true,
    run: async (t, on) => {
      const LoadBalancerId = await madeBalancer(on);
      const now = async () => (await on.call('DescribeLoadBalancers', {})).LoadBalancerSet?.[0];
      const request = { LoadBalancerId, LoadBalancerName: 'new', DeleteProtect: true, LoadBalancerPassToTarget: true };
      await on.call('ModifyLoadBalancerAttributes', request);
      t.like(await now(), { LoadBalancerName: 'lb', AttributeFlags: [] }, 'not before its task has ended');
      t.is(await on.refusal('ModifyLoadBalancerAttributes', request), 'FailedOperation.ResourceInOperating');
      await on.taskEnds();
      t.like(await now(), {
        LoadBalancerName: 'new',
        AttributeFlags: ['DeleteProtect'],
        LoadBalancerPassToTarget: true,
      });
      const set = (SecurityGroups?: string[]) => ({
        LoadBalancerId,
        ...(SecurityGroups === undefined ? {} : { SecurityGroups }),
      });
      await on.call('SetLoadBalancerSecurityGroups', set(['sg-clb00001', 'sg-clb00002']));
      await on.call('SetLoadBalancerSecurityGroups', set(['sg-clb00002']));
      t.deepEqual((await now())?.SecureGroups, ['sg-clb00002']);
      t.is(await on.refusal('SetLoadBalancerSecurityGroups', set(['sg-none'])), 'ResourceNotFound');
      await on.call('SetLoadBalancerSecurityGroups', set());
      t.deepEqual((await now())?.SecureGroups, [], 'none named: none is bound');
    },
  },
  {
    title:
      'DeleteLoadBalancer: not a protected one, not one with 20 targets unless forced; all that are named, or none',
    run: async (t, on) => {
      const [one, two] = [await madeBalancer(on, 'one'), await madeBalancer(on, 'two')];
      await on.done('ModifyLoadBalancerAttributes', { LoadBalancerId: one, DeleteProtect: true });
      t.is(await on.refusal('DeleteLoadBalancer', { LoadBalancerIds: [two, one] }), 'OperationDenied');
      t.is(
        await on.refusal('DeleteLoadBalancer', { LoadBalancerIds: [two, one], ForceDelete: true }),
        'OperationDenied',
      );
      t.is(
        await on.refusal('DeleteLoadBalancer', { LoadBalancerIds: [two, 'lb-none'] }),
        'InvalidParameter.LBIdNotFound',
      );
      t.is(await on.refusal('DeleteLoadBalancer', { LoadBalancerIds: [] }), 'InvalidParameterValue.Length');
      const [ListenerId = ''] = await madeListeners(on, two, [80]);
      const Targets = eniIps(on.host.model, 20).map((EniIp) => ({ ListenerId, Port: 80, EniIp }));
      await on.call('BatchRegisterTargets', { LoadBalancerId: two, Targets });
      t.is(await on.refusal('DeleteLoadBalancer', { LoadBalancerIds: [two] }), 'FailedOperation.TargetNumCheckRisk');
      await on.done('DeleteLoadBalancer', { LoadBalancerIds: [two], ForceDelete: true });
      t.is((await on.call('DescribeLoadBalancers', {})).TotalCount, 1);
      t.is(await on.refusal('DeleteLoadBalancer', { LoadBalancerIds: [two] }), 'InvalidParameter.LBIdNotFound');
      t.is(await on.refusal('DescribeListeners', { LoadBalancerId: two }), 'InvalidParameter.LBIdNotFound');
    },
  },
  {
    title: 'SetLoadBalancerSecurityGroups: packets of every listener follow the rules of its groups, in their order',
    isTimed: true,
    run: async (t, on) => {
      const LoadBalancerId = await madeBalancer(on);
      await madeListeners(on, LoadBalancerId, [80, 443]);
      const { state } = on.host.model;
      const { events } = state;
      const admissions = () =>
        events.splice(0).flatMap((event) => (event.kind === 'clb-listener' ? [event.listener.admission] : []));
      const [from, all] = [
        { cidr: '203.0.113.0/24', isAccepted: true },
        { cidr: '0.0.0.0/0', isAccepted: true },
      ];
      state.setSecurityRules('sg-clb00001', [
        { ...from, protocol: 'TCP', port: 80 },
        { ...all, protocol: 'UDP' },
      ]);
      events.length = 0;
      on.host.model.handle({
        product: 'clb',
        action: 'SetLoadBalancerSecurityGroups',
        params: { LoadBalancerId, SecurityGroups: ['sg-clb00001'] },
        requestId: 'r-1',
        nowMs: on.host.clock.nowMs(),
        planTask: () => ({ fate: 'succeed', lastsMs: 1 }),
      });
      t.deepEqual(admissions(), [[from], []]);
      state.setSecurityRules('sg-clb00001', [all]);
      t.deepEqual(admissions(), [[all], [all]]);
    },
  },
  {
    title: 'DeleteLoadBalancer: traffic of the last five minutes looks like a mistake, unless it is forced',
    isTimed: true,
    run: async (t, on) => {
      const [one, two] = [await madeBalancer(on, 'one'), await madeBalancer(on, 'two')];
      const { clb } = on.host.model.state;
      for (const id of [one, two]) clb.busyAtMs.set(id, on.host.clock.nowMs());
      t.is(await on.refusal('DeleteLoadBalancer', { LoadBalancerIds: [one] }), 'FailedOperation.TrafficCheckRisk');
      await on.done('DeleteLoadBalancer', { LoadBalancerIds: [two], ForceDelete: true });
      await on.sleep(300_000);
      await on.done('DeleteLoadBalancer', { LoadBalancerIds: [one] });
    },
  },
  {
    title: 'DeleteLoadBalancer: 30 in five minutes look like a mistake; five minutes later they do not',
    isTimed: true,
    run: async (t, on) => {
      const { pool } = on.host.model.state.subnet(SUBNET);
      const { free } = pool;
      const make = async (count: number) => {
        const { RequestId = '' } = await on.done('CreateLoadBalancer', { ...INTERNAL, Number: count });
        return (await on.call('DescribeTaskStatus', { TaskId: RequestId })).LoadBalancerIds ?? [];
      };
      const made = [...(await make(20)), ...(await make(10))];
      await on.done('DeleteLoadBalancer', { LoadBalancerIds: made.slice(0, 20) });
      t.is(
        await on.refusal('DeleteLoadBalancer', { LoadBalancerIds: made.slice(20) }),
        'FailedOperation.FrequencyCheckRisk',
      );
      await on.done('DeleteLoadBalancer', { LoadBalancerIds: made.slice(20, 29) });
      await on.sleep(301_000);
      await on.done('DeleteLoadBalancer', { LoadBalancerIds: made.slice(29) });
      t.is(pool.free, free, 'every address was given back');
    },
  },
];

testClbCases(CASES);
