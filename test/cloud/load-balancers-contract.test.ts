/** The contract of load balancers, listeners and targets: against the simulated cloud, with its traps and with faults. */
import test, { type ExecutionContext } from 'ava';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { ListenerSpec } from '../../cloud/listeners.ts';
import type { LoadBalancerSpec } from '../../cloud/load-balancers.ts';
import type { WeightedTarget } from '../../cloud/targets.ts';
import type { ClbSpec } from '../../sim/vpc/api/model/clb/clb-state.ts';
import { type Binding, contextOf, inProcess, overHttp, SPEC, type TestCloud } from './cloud-fixture.ts';

type Case = {
  readonly title: string;
  readonly clb?: ClbSpec;
  /** Also through the SDK and HTTP, where each task takes a second. */
  readonly isOverHttp?: boolean;
  readonly run: (t: ExecutionContext, on: TestCloud) => Promise<void>;
};

const SPEC_OF_LB: LoadBalancerSpec = {
  type: 'INTERNAL',
  name: 'web',
  vpcId: SPEC.vpcId,
  subnetId: 'subnet-large000',
  tags: { owner: 'cls-1/service/u1' },
};

const CASES: readonly Case[] = [
  {
    title: 'a load balancer gets listeners and targets, is drained and taken down',
    isOverHttp: true,
    run: async (t, on) => {
      const { listeners, targets, loadBalancers } = on.cloud;
      const id = await createdBalancer(on, { clientToken: 'u1-1' });
      const settings = {
        scheduler: 'LEAST_CONN',
        sessionSeconds: 30,
        resetsOnDeregister: true,
        healthCheck: { kind: 'TCP', checkPort: 30_100, intervalSeconds: 10, timeoutSeconds: 3 },
      };
      const ports = [
        { port: 443, name: 'u1/443' },
        { port: 80, name: 'u1/80' },
      ];
      const made = await listeners.create(id, { protocol: 'TCP', ports, settings }, contextOf());
      t.is((await loadBalancers.settle(made.task, contextOf())).kind, 'done');
      const found = await listeners.list(id, contextOf());
      t.deepEqual(
        made.listenerIds.map((one) => found.find(({ listenerId }) => listenerId === one)?.port),
        [443, 80],
      );
      t.like(
        found.find(({ port }) => port === 443),
        { name: 'u1/443', protocol: 'TCP', ...settings },
      );
      t.like(found[0]?.healthCheck, { isOn: true, source: 'shared-range', healthyThreshold: 3 });

      const [first = ''] = made.listenerIds;
      const [node, pod] = await backends(on, first);
      t.deepEqual(await targets.register(id, [node, { ...pod, tag: 'u1' }], contextOf()), []);
      const registered = await targets.list(id, made.listenerIds, contextOf());
      t.is(registered.length, 2);
      t.like(
        registered.find(({ ip }) => ip === node.ip),
        { ...node, kind: 'CVM', tag: '' },
      );
      t.like(
        registered.find(({ ip }) => ip === pod.ip),
        { ...pod, kind: 'ENI', tag: 'u1', instanceId: undefined },
      );

      const drain = await targets.setWeights(id, [{ ...pod, weight: 0 }], contextOf());
      t.is((await loadBalancers.settle(drain, contextOf())).kind, 'done');
      const drained = (await targets.list(id, [first], contextOf())).find(({ ip }) => ip === pod.ip);
      t.is(drained?.weight, 0);
      const health = await targets.health([id], contextOf());
      t.deepEqual(health.map(({ ip }) => ip).sort(), [node.ip, pod.ip].sort());
      t.true(health.every(({ loadBalancerId, listenerId }) => loadBalancerId === id && listenerId === first));
      t.deepEqual(await targets.findByIps(SPEC.vpcId, [pod.ip], contextOf()), [
        { loadBalancerId: id, listenerId: first, ip: pod.ip, port: pod.port, weight: 0 },
      ]);

      t.deepEqual(await targets.deregister(id, registered, contextOf()), []);
      t.deepEqual(await targets.list(id, made.listenerIds, contextOf()), []);
      const deletion = await listeners.delete(id, [first], contextOf());
      t.is((await loadBalancers.settle(deletion, contextOf())).kind, 'done');
      t.deepEqual(
        (await listeners.list(id, contextOf())).map(({ port }) => port),
        [80],
      );
    },
  },
  {
    title: 'create: the ids come with the task; the balancer has its tags, and the address that was asked for',
    isOverHttp: true,
    run: async (t, on) => {
      const id = await createdBalancer(on, { vip: '10.0.77.7', passesToTarget: true });
      const [one] = await on.cloud.loadBalancers.describe([id, 'lb-missing0'], contextOf());
      t.like(one, { loadBalancerId: id, type: 'INTERNAL', isNormal: true, vips: ['10.0.77.7'], domain: '' });
      t.like(one, { tags: SPEC_OF_LB.tags, passesToTarget: true, subnetId: 'subnet-large000', isPrepaid: false });
    },
  },
  {
    title: 'create: a task that is known by its order alone is found',
    run: async (t, { cloud }) => {
      const { loadBalancers } = cloud;
      const task = await loadBalancers.create(SPEC_OF_LB, contextOf());
      t.truthy(task.dealName);
      const outcome = await loadBalancers.settle({ ...task, taskId: 'never-heard-of' }, contextOf());
      t.is(outcome.kind === 'done' && outcome.loadBalancerIds.length, 1);
    },
  },
  {
    title: 'settle: asks for a task by its age, and not after the time of the context',
    run: async (t, { cloud, host }) => {
      const { loadBalancers } = cloud;
      host.faults.add({ fault: { kind: 'slow-task', ms: 20_000 }, actions: ['CreateLoadBalancer'] });
      const task = await loadBalancers.create(SPEC_OF_LB, contextOf());
      host.forget();
      t.deepEqual(await loadBalancers.settle(task, contextOf({ timeoutMs: 9_000 })), { kind: 'pending' });
      t.is(host.seen.length, 6);
      t.is((await loadBalancers.settle(task, contextOf())).kind, 'done');
      t.true(host.seen.length <= 14, `${host.seen.length}`);
    },
  },
  {
    title: 'create: charge, bandwidth, package and zones are ordered and described',
    run: async (t, on) => {
      const id = await createdBalancer(on, {
        ...OPEN,
        chargeType: 'BANDWIDTH_PACKAGE',
        bandwidthPackageId: 'bwp-00000001',
        bandwidthMbps: 200,
        isp: 'CMCC',
        slaType: 'clb.c2.medium',
        masterZone: 'ap-guangzhou-3',
        backupZone: 'ap-guangzhou-4',
      });
      const described = { chargeType: 'BANDWIDTH_PACKAGE', bandwidthMbps: 200, isp: 'CMCC', slaType: 'clb.c2.medium' };
      t.like((await on.cloud.loadBalancers.describe([id], contextOf()))[0], described);
      t.like(on.host.model.state.clb.balancer(id).extras, {
        bandwidthPackageId: 'bwp-00000001',
        masterZoneId: 'ap-guangzhou-3',
        slaveZoneId: 'ap-guangzhou-4',
      });
      const changed = await on.cloud.loadBalancers.modify(id, { bandwidthMbps: 300, name: 'other' }, contextOf());
      await settled(on, changed);
      t.like((await on.cloud.loadBalancers.describe([id], contextOf()))[0], {
        ...described,
        bandwidthMbps: 300,
        name: 'other',
      });
    },
  },
  {
    title: 'create: a name that exists is replaced, so that only tags find what was created',
    run: async (t, on) => {
      const { loadBalancers } = on.cloud;
      const ids = [await createdBalancer(on), await createdBalancer(on)];
      await createdBalancer(on, { name: 'website', tags: { owner: 'another' } });
      const tag = { key: 'owner', value: 'cls-1/service/u1' };
      const byTag = await loadBalancers.find({ vpcId: SPEC.vpcId, tag }, contextOf());
      t.true(byTag.isConsistent);
      t.deepEqual(byTag.loadBalancers.map(({ loadBalancerId }) => loadBalancerId).sort(), ids.toSorted());
      const byName = await loadBalancers.find({ name: 'web' }, contextOf());
      t.deepEqual(
        byName.loadBalancers.map(({ loadBalancerId }) => loadBalancerId),
        ids.slice(0, 1),
      );
      t.deepEqual((await loadBalancers.find({ vpcId: 'vpc-other000' }, contextOf())).loadBalancers, []);
    },
  },
  {
    title: 'create: a lost answer makes no second one; a creation that failed uses its token up',
    run: async (t, { cloud, host }) => {
      const { loadBalancers } = cloud;
      const spec = { ...SPEC_OF_LB, clientToken: 'u1-1' };
      host.faults.add({ fault: { kind: 'reset', after: true }, actions: ['CreateLoadBalancer'], times: 2 });
      const outcome = await loadBalancers.settle(await loadBalancers.create(spec, contextOf()), contextOf());
      t.is(outcome.kind, 'done');
      t.is(host.model.state.clb.balancers().size, 1);
      host.faults.add({ fault: { kind: 'task', fate: 'fail' }, actions: ['CreateLoadBalancer'], times: 1 });
      const failed = await loadBalancers.create({ ...spec, clientToken: 'u1-2' }, contextOf());
      t.is((await loadBalancers.settle(failed, contextOf())).kind, 'failed');
      const again = await failure(loadBalancers.create({ ...spec, clientToken: 'u1-2' }, contextOf()));
      t.like(again, { code: 'InvalidParameter.ClientTokenLimitExceeded', retry: 'never' });
    },
  },
  {
    title: 'create: a public one of a newer account has a domain and no address',
    clb: { hasOnlyDomains: true },
    run: async (t, on) => {
      const id = await createdBalancer(on, OPEN);
      const [one] = await on.cloud.loadBalancers.describe([id], contextOf());
      t.deepEqual(one?.vips, []);
      t.regex(one?.domain ?? '', /tencentclb\.com$/);
    },
  },
  {
    title: 'find: reads all pages, and says when it could not',
    clb: { limits: { internalBalancers: 500 } },
    run: async (t, on) => {
      const { loadBalancers } = on.cloud;
      const created = Array.from({ length: 101 }, () => loadBalancers.create(SPEC_OF_LB, contextOf()));
      await Promise.all(created);
      const tag = { key: 'owner', value: 'cls-1/service/u1' };
      const all = await loadBalancers.find({ tag }, contextOf());
      t.is(new Set(all.loadBalancers.map(({ loadBalancerId }) => loadBalancerId)).size, 101);
      t.true(all.isConsistent);
      on.host.faults.add({ fault: { kind: 'partial' }, actions: ['DescribeLoadBalancers'] });
      t.false((await loadBalancers.find({ tag }, contextOf())).isConsistent);
    },
  },
  {
    title: 'delete: without ids nothing is sent, where the API would delete every listener',
    run: async (t, on) => {
      const { listeners } = on.cloud;
      const id = await createdBalancer(on);
      await createdListeners(on, id, [80, 81]);
      on.host.forget();
      for (const ids of [[], ['']]) {
        t.like(await failure(listeners.delete(id, ids, contextOf())), { code: 'BAD_REQUEST', retry: 'never' });
      }
      t.deepEqual(on.host.counts(), {});
      t.is((await listeners.list(id, contextOf())).length, 2);
    },
  },
  {
    title: 'changes: a list that is empty or longer than the API takes is refused before it is sent',
    run: async (t, on) => {
      const { listeners, targets, loadBalancers } = on.cloud;
      const many = <T>(count: number, make: (index: number) => T): readonly T[] =>
        Array.from({ length: count }, (_, index) => make(index));
      const target = (index: number): WeightedTarget => ({
        listenerId: 'lbl-1',
        ip: '10.0.0.9',
        port: index + 1,
        weight: 1,
      });
      const ofMany = (index: number): WeightedTarget => ({ ...target(index), listenerId: `lbl-${index}` });
      const create = (count: number) =>
        listeners.create(
          'lb-1',
          { protocol: 'TCP', ports: many(count, (index) => ({ port: index + 1, name: 'n' })), settings: {} },
          contextOf(),
        );
      const calls = [
        () =>
          listeners.delete(
            'lb-1',
            many(21, (index) => `lbl-${index}`),
            contextOf(),
          ),
        () => create(0),
        () => create(50),
        () => targets.register('lb-1', [], contextOf()),
        () => targets.register('lb-1', many(501, target), contextOf()),
        () => targets.deregister('lb-1', [], contextOf()),
        () => targets.setWeights('lb-1', [], contextOf()),
        () => targets.setWeights('lb-1', many(501, target), contextOf()),
        () => targets.setWeights('lb-1', many(101, ofMany), contextOf()),
        () =>
          loadBalancers.setSecurityGroups(
            'lb-1',
            many(51, (index) => `sg-${index}`),
            contextOf(),
          ),
      ];
      for (const call of calls) t.like(await failure(call()), { code: 'BAD_REQUEST', retry: 'never' });
      t.deepEqual(on.host.counts(), {});
    },
  },
  {
    title: 'changes: one waits while another runs, until its time is over',
    run: async (t, on) => {
      const { loadBalancers } = on.cloud;
      const id = await createdBalancer(on);
      const slow = { kind: 'slow-task', ms: 3_000 } as const;
      on.host.faults.add({ fault: slow, actions: ['ModifyLoadBalancerAttributes'], times: 2 });
      await loadBalancers.modify(id, { name: 'first' }, contextOf());
      on.host.forget();
      await settled(on, await loadBalancers.modify(id, { name: 'second' }, contextOf()));
      t.true(on.host.seen.some(({ code }) => code === 'FailedOperation.ResourceInOperating'));
      t.is((await loadBalancers.describe([id], contextOf()))[0]?.name, 'second');
      on.host.faults.add({ fault: { ...slow, ms: 60_000 }, actions: ['ModifyLoadBalancerAttributes'], times: 1 });
      await loadBalancers.modify(id, { name: 'third' }, contextOf());
      const late = await failure(loadBalancers.modify(id, { name: 'fourth' }, contextOf({ timeoutMs: 5_000 })));
      t.like(late, { code: 'FailedOperation.ResourceInOperating', retry: 'busy' });
    },
  },
  {
    title: 'register: what is refused in part is told by listener and target, and is no error',
    run: async (t, on) => {
      const { targets } = on.cloud;
      const id = await createdBalancer(on);
      const [first = '', second = ''] = await createdListeners(on, id, [80, 81]);
      const [node, pod] = await backends(on, first);
      const ofSecond = [node, pod].map((target) => ({ ...target, listenerId: second }));
      t.deepEqual(await targets.register(id, [pod], contextOf()), []);
      const refused = await targets.register(id, [node, pod, ...ofSecond], contextOf());
      t.deepEqual(
        refused.map(({ listenerId, targets: ofListener }) => [listenerId, ofListener]),
        [[first, [node, pod]]],
      );
      t.regex(refused[0]?.reason ?? '', /bound to lbl-\S+ already/);
      const now = await targets.list(id, [first, second], contextOf());
      t.deepEqual(
        now.map(({ listenerId, ip }) => `${listenerId} ${ip}`).sort(),
        [`${first} ${pod.ip}`, ...ofSecond.map(({ ip }) => `${second} ${ip}`)].sort(),
      );
      const [missing] = await targets.deregister(id, [node], contextOf());
      t.like(missing, { listenerId: first, targets: [node] });
      on.host.faults.add({ fault: { kind: 'refuse-one' }, actions: ['BatchDeregisterTargets'], times: 1 });
      const half = await targets.deregister(id, [pod, ...ofSecond], contextOf());
      t.deepEqual(
        half.map(({ listenerId }) => listenerId),
        [second],
      );
      t.is((await targets.list(id, [first, second], contextOf())).length, 2);
    },
  },
  {
    title: 'changes of what is gone: a listener, a load balancer',
    run: async (t, on) => {
      const { targets, listeners, loadBalancers } = on.cloud;
      const id = await createdBalancer(on);
      const [first = ''] = await createdListeners(on, id, [80]);
      const [node] = await backends(on, 'lbl-missing0');
      const gone = [
        () => listeners.delete(id, [first, 'lbl-missing0'], contextOf()),
        () => listeners.modify(id, 'lbl-missing0', { sessionSeconds: 60 }, contextOf()),
        () => targets.register(id, [node], contextOf()),
        () => targets.list(id, ['lbl-missing0'], contextOf()),
        () => targets.setWeights(id, [node], contextOf()),
        () => targets.health(['lb-missing0'], contextOf()),
        () => listeners.list('lb-missing0', contextOf()),
        () => loadBalancers.modify('lb-missing0', { name: 'x' }, contextOf()),
        () => loadBalancers.setSecurityGroups('lb-missing0', [], contextOf()),
        () => loadBalancers.delete('lb-missing0', contextOf()),
      ];
      for (const call of gone) t.like(await failure(call()), { retry: 'gone' });
    },
  },
  {
    title: 'changes without a token: a lost answer is for the caller to resolve',
    run: async (t, on) => {
      const { targets, listeners } = on.cloud;
      const id = await createdBalancer(on);
      const lost = { kind: 'reset', after: true } as const;
      on.host.faults.add({ fault: lost, actions: ['CreateListener'], times: 1 });
      on.host.faults.add({ fault: lost, actions: ['BatchRegisterTargets'], times: 1 });
      const spec = { protocol: 'UDP', ports: [{ port: 53, name: 'u1/53' }], settings: {} } as const;
      t.like(await failure(listeners.create(id, spec, contextOf())), { retry: 'resolve' });
      await on.host.clock.sleep(5_000);
      const [made] = await listeners.list(id, contextOf());
      t.like(made, { protocol: 'UDP', port: 53, name: 'u1/53' });
      t.like(await failure(listeners.create(id, spec, contextOf())), {
        retry: 'never',
        code: 'InvalidParameter.PortCheckFailed',
      });
      const [node] = await backends(on, made?.listenerId ?? '');
      t.like(await failure(targets.register(id, [node], contextOf())), { retry: 'resolve' });
      t.is((await targets.list(id, [node.listenerId], contextOf())).length, 1);
      t.is((await targets.register(id, [node], contextOf())).length, 1);
    },
  },
  {
    title: 'quotas are described, and told from each other',
    clb: { limits: { internalBalancers: 1, listeners: 2, targets: 1 } },
    run: async (t, on) => {
      const { loadBalancers, listeners, targets } = on.cloud;
      const id = await createdBalancer(on);
      t.like(await loadBalancers.quotas(contextOf()), {
        openLoadBalancers: { limit: 100, used: 0 },
        internalLoadBalancers: { limit: 1, used: 1 },
        listeners: { limit: 2 },
        targets: { limit: 1 },
      });
      const another = await failure(loadBalancers.create(SPEC_OF_LB, contextOf()));
      t.like(another, { retry: 'quota', scope: 'load-balancers' });
      const [first = ''] = await createdListeners(on, id, [80]);
      const ports = [
        { port: 81, name: 'a' },
        { port: 82, name: 'b' },
      ];
      const tooMany = await failure(listeners.create(id, { protocol: 'TCP', ports, settings: {} }, contextOf()));
      t.like(tooMany, { retry: 'quota', scope: 'listeners' });
      const [refused] = await targets.register(id, await backends(on, first), contextOf());
      t.regex(refused?.reason ?? '', /LimitExceeded/);
    },
  },
  {
    title: 'delete: what is protected, or looks like a mistake, is refused; never by force',
    run: async (t, on) => {
      const { loadBalancers, targets } = on.cloud;
      const id = await createdBalancer(on);
      await settled(on, await loadBalancers.modify(id, { isDeleteProtected: true }, contextOf()));
      t.true((await loadBalancers.describe([id], contextOf()))[0]?.isDeleteProtected);
      t.like(await failure(loadBalancers.delete(id, contextOf())), { code: 'OperationDenied', retry: 'never' });
      await settled(on, await loadBalancers.modify(id, { isDeleteProtected: false }, contextOf()));
      const [first = ''] = await createdListeners(on, id, [80]);
      const [node] = await backends(on, first);
      const busy = Array.from({ length: 20 }, (_, index) => ({ ...node, port: 8_000 + index }));
      t.deepEqual(await targets.register(id, busy, contextOf()), []);
      const risky = await failure(loadBalancers.delete(id, contextOf()));
      t.like(risky, { code: 'FailedOperation.TargetNumCheckRisk', retry: 'never' });
      t.deepEqual(await targets.deregister(id, busy, contextOf()), []);
      await settled(on, await loadBalancers.delete(id, contextOf()));
      t.deepEqual(await loadBalancers.describe([id], contextOf()), []);
    },
  },
  {
    title: 'setSecurityGroups: replaces all in their order; an empty list unbinds all',
    run: async (t, on) => {
      const { loadBalancers } = on.cloud;
      const id = await createdBalancer(on);
      const groups = async () => (await loadBalancers.describe([id], contextOf()))[0]?.securityGroupIds;
      await loadBalancers.setSecurityGroups(id, ['sg-b', 'sg-a'], contextOf());
      t.deepEqual(await groups(), ['sg-b', 'sg-a']);
      await loadBalancers.setSecurityGroups(id, [], contextOf());
      t.deepEqual(await groups(), []);
    },
  },
  {
    title: 'listeners.modify: changes what is given and leaves the rest',
    run: async (t, on) => {
      const { listeners } = on.cloud;
      const id = await createdBalancer(on);
      const [first = ''] = await createdListeners(on, id, [80]);
      const changes = {
        sessionSeconds: 3_600,
        idleSeconds: 60,
        healthCheck: {
          kind: 'HTTP',
          checkPort: 30_200,
          http: { path: '/healthz', domain: 'a.b', method: 'GET', version: 'HTTP/1.1', codes: 2 },
        },
      } as const;
      await settled(on, await listeners.modify(id, first, { ...changes, name: 'renamed' }, contextOf()));
      t.like((await listeners.list(id, contextOf()))[0], { ...changes, name: 'renamed', scheduler: 'WRR', port: 80 });
      const exchange = { format: 'TEXT', send: 'ping', receive: 'pong' } as const;
      const custom = { healthCheck: { kind: 'CUSTOM', checkPort: 'target', source: 'vip', exchange } } as const;
      await settled(on, await listeners.modify(id, first, custom, contextOf()));
      t.like((await listeners.list(id, contextOf()))[0], { ...custom, sessionSeconds: 3_600, name: 'renamed' });
      await settled(on, await listeners.modify(id, first, { healthCheck: { isOn: false } }, contextOf()));
      const [node] = await backends(on, first);
      await on.cloud.targets.register(id, [node], contextOf());
      t.deepEqual(
        (await on.cloud.targets.health([id], contextOf())).map(({ state }) => state),
        ['unchecked'],
      );
    },
  },
  {
    title: 'weights: 500 targets of several listeners are one call',
    clb: { limits: { targets: 300 } },
    run: async (t, on) => {
      const { targets } = on.cloud;
      const id = await createdBalancer(on);
      const ids = await createdListeners(on, id, [80, 81]);
      const [node] = await backends(on, '');
      const all = ids.flatMap((listenerId) =>
        Array.from({ length: 250 }, (_, index) => ({ ...node, listenerId, port: 10_000 + index })),
      );
      t.deepEqual(await targets.register(id, all, contextOf()), []);
      on.host.forget();
      await settled(
        on,
        await targets.setWeights(
          id,
          all.map((one) => ({ ...one, weight: 0 })),
          contextOf(),
        ),
      );
      t.is(on.host.counts()['BatchModifyTargetWeight'], 1);
      const after = await targets.list(id, ids, contextOf());
      t.is(after.filter(({ weight }) => weight === 0).length, 500);
    },
  },
];

const OPEN: Pick<LoadBalancerSpec, 'type'> & { readonly subnetId: undefined } = { type: 'OPEN', subnetId: undefined };

type Changes = { readonly [K in keyof LoadBalancerSpec]?: LoadBalancerSpec[K] | undefined };

/** A load balancer that is ready for use. */
async function createdBalancer({ cloud }: TestCloud, changes: Changes = {}): Promise<string> {
  const spec = Object.fromEntries(
    Object.entries({ ...SPEC_OF_LB, ...changes }).filter(([, value]) => value !== undefined),
  );
  const task = await cloud.loadBalancers.create(spec as LoadBalancerSpec, contextOf());
  const outcome = await cloud.loadBalancers.settle(task, contextOf());
  if (outcome.kind !== 'done') throw new Error(`the creation ended: ${outcome.kind}`);
  const [id = ''] = outcome.loadBalancerIds;
  return id;
}

/** Listeners of TCP that are ready for use. */
async function createdListeners(on: TestCloud, id: string, wanted: readonly number[]): Promise<readonly string[]> {
  const ports = wanted.map((port) => ({ port, name: `u1/${port}` }));
  const spec: ListenerSpec = { protocol: 'TCP', ports, settings: {} };
  const { listenerIds, task } = await on.cloud.listeners.create(id, spec, contextOf());
  await settled(on, task);
  return listenerIds;
}

async function settled(
  { cloud }: TestCloud,
  task: Parameters<TestCloud['cloud']['loadBalancers']['settle']>[0],
): Promise<void> {
  const outcome = await cloud.loadBalancers.settle(task, contextOf());
  if (outcome.kind !== 'done') throw new Error(`${task.action} ended: ${outcome.kind}`);
}

/** A node by its primary address, and a Pod by an address of an ENI of it. */
async function backends(
  { cloud, host }: TestCloud,
  listenerId: string,
): Promise<readonly [WeightedTarget, WeightedTarget]> {
  const instanceId = 'ins-cores008';
  const [instance] = await cloud.instances.describe([instanceId], contextOf());
  const [ip = ''] = instance?.privateIps ?? [];
  const { state } = host.model;
  const podIp = state.subnet('subnet-large000').pool.take();
  state
    .enisOf(instanceId)
    .find(({ isPrimary }) => isPrimary)
    ?.ips.set(podIp, { ip: podIp, isPrimary: false, state: 'AVAILABLE' });
  return [
    { listenerId, ip, port: 30_080, weight: 10, instanceId },
    { listenerId, ip: podIp, port: 8_080, weight: 20 },
  ];
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  const error = await work.then(
    () => new Error('it went well'),
    (caught: unknown) => caught,
  );
  if (isCloudError(error)) return error;
  throw error;
}

const runOn = test.macro(async (t, binding: Binding, { clb = {}, run }: Case) => {
  const on = await binding({}, { clb });
  try {
    await on.wait(run(t, on));
  } finally {
    await on.close();
  }
});

for (const one of CASES) {
  test(`in process: ${one.title}`, runOn, inProcess, one);
  if (one.isOverHttp === true) test(`over HTTP: ${one.title}`, runOn, overHttp, one);
}
