import test, { type ExecutionContext } from 'ava';
import { ADDRESS_STATE } from '../../../agent/api/ops-messages.ts';
import { attach } from '../../../agent/attachment/attach.ts';
import { detach } from '../../../agent/attachment/detach.ts';
import { usePodCidrs } from '../../../agent/bridge/accept-pod-cidr.ts';
import { holdAddresses } from '../../../agent/bridge/hold-addresses.ts';
import { createMetrics } from '../../../agent/observability/metrics.ts';
import { createKubeTally } from '../../../agent/ops/kube-tally.ts';
import { poolReply } from '../../../agent/ops/pool-reply.ts';
import { repairReply } from '../../../agent/ops/repair-reply.ts';
import { computeCallStats, type SummaryView, sumMetric, summaryReply } from '../../../agent/ops/summary-reply.ts';
import type { Operation } from '../../../dataplane/operation.ts';
import { TokenBucket } from '../../../kube/token-bucket.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { sampleAddress, sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';
import { addOf, createTestNode, PATIENT, type TestNode } from '../use-cases/fixtures.ts';

function nodeOf(t: ExecutionContext, ipCount: number): TestNode {
  const node = createTestNode(ipCount);
  t.teardown(node.close);
  return node;
}

const view = (bootMs: number) => ({
  ...{ bootMs, cooldownMs: 120_000, warm: { min: 2, max: 5, limit: 30 } },
  outside: { waiting: 1, floor: 0 },
});

test('poolReply: says of each address who has it and how it is', async (t) => {
  const { deps, state, clock } = nodeOf(t, 6);
  await attach(deps, addOf(1), PATIENT);
  await attach(deps, addOf(2), PATIENT);
  clock.advance(10_000);
  await detach(deps, { containerId: 'c2', ifName: 'eth0' });
  clock.advance(20_000);
  state.pool.withdraw(['10.0.0.12']);
  const eni = state.supply?.enis[0];
  const addresses = (eni?.addresses ?? []).map((address) =>
    address.ip === '10.0.0.13' ? { ...address, state: 'releasing' as const } : address,
  );
  const idle = sampleEni('eni-2', [], {
    addresses: [sampleAddress('10.0.1.5')],
    mac: '02:00:00:00:00:02',
    draining: true,
  });
  state.supply = sampleSupply([{ ...sampleEni('eni-1', []), ...eni, addresses }, idle], 7);
  state.pool.applySupply(state.supply);
  state.eniProblems.set('eni-2', { eniId: 'eni-2', kind: 'missing', text: 'no link with its MAC' });
  state.addsWaiting.set('c9/eth0', { podNamespace: 'ns', podName: 'late' });

  const reply = poolReply(state, view(clock.bootMs()));
  t.deepEqual(Object.fromEntries((reply.addresses ?? []).map(({ ip, state: number }) => [ip, number])), {
    '10.0.0.10': ADDRESS_STATE.ADDRESS_STATE_IN_USE,
    '10.0.0.11': ADDRESS_STATE.ADDRESS_STATE_COOLING,
    '10.0.0.12': ADDRESS_STATE.ADDRESS_STATE_OFFERED,
    '10.0.0.13': ADDRESS_STATE.ADDRESS_STATE_RELEASING,
    '10.0.0.14': ADDRESS_STATE.ADDRESS_STATE_FREE,
    '10.0.0.15': ADDRESS_STATE.ADDRESS_STATE_FREE,
    '10.0.1.5': ADDRESS_STATE.ADDRESS_STATE_UNREADY,
  });
  t.like(reply.addresses?.[0], {
    containerId: 'c1',
    ifName: 'eth0',
    podNamespace: 'default',
    podName: 'p1',
    eniId: 'eni-1',
  });
  t.like(reply.addresses?.[1], { containerId: undefined, coolRemainingMs: 100_000 });
  t.like(reply.enis?.[0], {
    eniId: 'eni-1',
    ifname: 'eth1',
    table: 4007,
    slot: 1,
    ready: true,
    addresses: 6,
    inUse: 1,
    free: 2,
  });
  t.like(reply.enis?.[1], { eniId: 'eni-2', ready: false, draining: true, problem: 'no link with its MAC', table: 0 });
  t.deepEqual(reply.waiting, [{ containerId: 'c9', ifName: 'eth0', podNamespace: 'ns', podName: 'late' }]);
  t.like(reply, { supplyEpoch: 7, warmMin: 2, warmMax: 5, limit: 30, hasSupply: true, supplyProblem: '' });
  // In use and cooling 2, one Pod waits, and the two that are free are to spare.
  t.is(reply.demand, 5);
});

test('poolReply: an address of a block that host-local reserves is not ready', (t) => {
  const { state } = nodeOf(t, 1);
  usePodCidrs(state, ['172.20.0.0/29']);
  holdAddresses(state, new Set(['172.20.0.3']));
  const held = (poolReply(state, view(0)).addresses ?? []).filter(({ ip }) => ip?.startsWith('172.20.'));
  t.deepEqual(
    held.map(({ ip, state: number }) => [ip, number]),
    [['172.20.0.3', ADDRESS_STATE.ADDRESS_STATE_UNREADY]],
  );
});

test('poolReply: answers before any supply, and names what it waits for', (t) => {
  const { state } = nodeOf(t, 0);
  state.supply = undefined;
  state.supplyWaitsFor = () => 'the first supply';
  t.like(poolReply(state, view(0)), { hasSupply: false, supplyProblem: 'the first supply', enis: { length: 0 } });
});

test('poolReply: says who has an address that the supply no longer lists', async (t) => {
  const { deps, state } = nodeOf(t, 2);
  await attach(deps, addOf(1), PATIENT);
  state.supply = sampleSupply([sampleEni('eni-1', [])], 2);
  state.pool.applySupply(state.supply);
  const [only, ...others] = poolReply(state, view(0)).addresses ?? [];
  t.like(only, { ip: '10.0.0.10', unlisted: true, state: ADDRESS_STATE.ADDRESS_STATE_IN_USE, podName: 'p1' });
  t.deepEqual(others, []);
});

test('findCalls, findTotal: read totals, failures and buckets from the registry', async (t) => {
  const metrics = createMetrics();
  for (const ms of [0.4, 0.5, 1.5, 60_000]) metrics.requests.observeMs({ verb: 'add', code: 0 }, ms);
  metrics.requests.observeMs({ verb: 'add', code: 101 }, 30_000);
  metrics.requests.observeMs({ verb: 'del', code: 0 }, 2);
  metrics.drift.inc({ kind: 'add-rule' }, 3);
  metrics.drift.inc({ kind: 'replace-route' }, 4);
  const counted = await metrics.registry.getMetricsAsJSON();
  t.is(sumMetric(counted, 'tke_eni_drift_total'), 7);
  t.is(sumMetric(counted, 'tke_eni_no_such'), 0);
  const calls = computeCallStats(counted);
  const add = calls.find(({ verb }) => verb === 'add');
  t.like(add, { total: 5, failed: 1, sumUs: 90_002_400 });
  t.deepEqual(
    add?.buckets?.filter(({ count }) => count !== 0),
    [
      { upToUs: 500, count: 2 },
      { upToUs: 2_000, count: 1 },
      { upToUs: 40_000_000, count: 1 },
      { upToUs: 0, count: 1 },
    ],
  );
  t.is(add?.buckets?.at(-1)?.upToUs, 0, 'the one without a bound comes last');
  t.like(
    calls.find(({ verb }) => verb === 'del'),
    { total: 1, failed: 0 },
  );
});

const SUMMARY: SummaryView = {
  ...{
    monotonicMs: 5_000,
    startedMs: 1_000,
    nodeName: 'n1',
    supplySource: 'file',
    grWiring: 'bridge',
    journalOrigin: 'fresh',
    status: undefined,
  },
  ...{
    metrics: [],
    paused: [],
    lastPass: undefined,
    kube: undefined,
    programs: undefined,
    watchers: 0,
    apiFailures: [],
  },
};

test('summaryReply: counts leases by state and names what is wrong', async (t) => {
  const { deps, state } = nodeOf(t, 3);
  await attach(deps, addOf(1), PATIENT);
  state.leases.set('r/eth0', sampleLease('r', 'eni-1', ['10.0.0.11'], { state: 'releasing' }));
  state.reportedConflicts = ['a rule of others'];
  const reply = summaryReply(state, {
    ...SUMMARY,
    status: { code: 51, msg: 'cut off', details: 'why' },
    lastPass: { endedMs: 4_000, cause: 'timer', error: 'EBUSY' },
    kube: {
      qps: 10,
      burst: 20,
      calls: 7,
      failed: 1,
      throttled: 2,
      throttledMs: 30.4,
      tokensLeft: 3,
      silenceMs: Number.POSITIVE_INFINITY,
    },
  });
  t.like(reply, {
    ...{ uptimeMs: 4_000, leasesPending: 0, leasesActive: 1, leasesReleasing: 1, conflicts: ['a rule of others'] },
    ...{ lastPassAgeMs: 1_000, lastPassError: 'EBUSY', lastPassCause: 'timer' },
    status: { code: 51, msg: 'cut off', details: 'why' },
    api: { qps: 10, calls: 7, throttledMs: 30, heard: false, silenceMs: 0 },
  });
  t.like(summaryReply(state, SUMMARY), { status: { code: 0 }, api: undefined });
});

test('createKubeTally: counts calls and failures', (t) => {
  const { observer, use } = createKubeTally({ qps: 10, burst: 20 }, new VirtualClock());
  const request = { verb: 'get', resource: 'pods', ms: 3 } as const;
  observer.onRequest?.({ ...request, outcome: 'ok' });
  observer.onRequest?.({ ...request, outcome: 'FORBIDDEN' });
  observer.onRequest?.({ ...request, verb: 'watch', outcome: 'EXPIRED' });
  t.like(use(), { qps: 10, burst: 20, calls: 3, failed: 1, throttled: 0, throttledMs: 0, tokensLeft: 20 });
});

test('createKubeTally: agrees with the bucket on who has to wait, and knows what is left', async (t) => {
  const clock = new VirtualClock();
  const bucket = new TokenBucket(clock, 10, 5);
  const { observer, use } = createKubeTally({ qps: 10, burst: 5 }, clock);
  const call = async (): Promise<void> => {
    const fromMs = clock.monotonicMs();
    await bucket.take();
    observer.onRateLimitWait?.(clock.monotonicMs() - fromMs);
  };
  for (let count = 0; count < 5; count++) await call();
  t.like(use(), { throttled: 0, tokensLeft: 0 });
  const waiting = [call(), call(), call()];
  await clock.advance(1_000);
  await Promise.all(waiting);
  // After 100, 200 and 300 ms.
  t.like(use(), { throttled: 3, throttledMs: 600, tokensLeft: 5 });
  // The process was busy: the call had a turn at once and heard of it late.
  observer.onRateLimitWait?.(50);
  t.like(use(), { throttled: 3, tokensLeft: 4 });
});

const RULE: Operation = { kind: 'add-rule', rule: { family: 4, priority: 512, table: 3999 } };

test('repairReply: renders what a person would type, and leaves links that are gone to their ENI', (t) => {
  const conflict = { place: 'table 4007', found: 'x', wanted: 'y', next: 'z' };
  const reply = repairReply({
    operations: [RULE],
    failed: [{ operation: RULE, error: new Error('EEXIST') }],
    paused: [RULE],
    conflicts: [
      { ...conflict, kind: 'table', message: 'a table of others' },
      { ...conflict, kind: 'link', message: 'gone' },
    ],
  });
  const line = 'ip -4 rule add pref 512 lookup 3999 proto 84';
  t.deepEqual(reply, {
    operations: [line],
    failed: [{ operation: line, error: 'EEXIST' }],
    held: [line],
    conflicts: ['a table of others'],
  });
});

test('poolReply: says of a kept address whose it is, whoever has it', (t) => {
  const { deps, state } = nodeOf(t, 1);
  const claim = { namespace: 'ns', name: 'web-0', uid: 'u1' };
  const addresses = [
    sampleAddress('10.0.0.10', { claim }),
    sampleAddress('10.0.0.11', { claim: { ...claim, name: 'web-1' } }),
  ];
  state.pool.applySupply(sampleSupply([sampleEni('eni-1', [], { addresses })], 7));
  state.pool.leaseStatic({ key: 'c1/eth0', pod: claim, families: [4] });
  const reply = poolReply(state, view(deps.clock.bootMs()));
  t.like(reply.addresses?.[0], { state: ADDRESS_STATE.ADDRESS_STATE_IN_USE, keptFor: 'ns/web-0', keptUid: 'u1' });
  t.like(reply.addresses?.[1], { state: ADDRESS_STATE.ADDRESS_STATE_KEPT, keptFor: 'ns/web-1' });
});
