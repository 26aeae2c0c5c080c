import test, { type ExecutionContext } from 'ava';
import { attach } from '../../../agent/attachment/attach.ts';
import { detach } from '../../../agent/attachment/detach.ts';
import { endCooldowns } from '../../../agent/attachment/end-cooldowns.ts';
import { createMetrics } from '../../../agent/observability/metrics.ts';
import { sumMetric } from '../../../agent/ops/sum-metrics.ts';
import { addOf, createTestNode, PATIENT, type TestNode } from './fixtures.ts';

const WARM = { min: 5, max: 5 };
const ONE_WAITS = { waiting: 1, floor: 0 };

function nodeOf(t: ExecutionContext, ipCount: number) {
  const node = createTestNode(ipCount);
  t.teardown(() => node.close());
  const metrics = createMetrics({ processMetrics: false });
  const cutShort = async () => sumMetric(await metrics.registry.getMetricsAsJSON(), 'tke_eni_forced_reuse_total');
  return { ...node, deps: { ...node.deps, metrics }, cutShort };
}

/** Gives a sandbox an address and ends it `livedMs` later; kubelet makes the next one 2 s after that. */
async function runOnce({ deps, clock }: TestNode, n: number, livedMs: number): Promise<string | undefined> {
  const outcome = await attach(deps, addOf(n), PATIENT);
  clock.advance(livedMs);
  await detach(deps, { containerId: `c${n}`, ifName: 'eth0' });
  clock.advance(2_000);
  endCooldowns(deps);
  return outcome.kind === 'attached' ? outcome.lease.addresses[0]?.ip : outcome.kind;
}

test('a Pod whose sandboxes fail after our ADD collects no addresses, and each try gets one', async (t) => {
  const node = nodeOf(t, 6);
  for (let n = 0; n < 17; n++) {
    t.regex((await runOnce(node, n, 1_000)) ?? 'nothing', /^10\.0\.0\.1\d$/);
    t.is(node.state.pool.demand(WARM, ONE_WAITS).desired, 6);
  }
  t.is(node.state.pool.counts().cooling, 6, 'each address rests');
  t.is(node.flushed.length, 11, 'one that is given before its rest ended has no connections');
  t.is(await node.cutShort(), 0, 'that is no pressure on the pool');
});

test('an address that a Pod lived with rests, and counts as demand', async (t) => {
  const node = nodeOf(t, 6);
  for (let n = 0; n < 3; n++) await runOnce(node, n, 10_000);
  t.is(node.state.pool.demand(WARM, ONE_WAITS).desired, 9);
  t.deepEqual(node.flushed, []);
});

test('of resting addresses those without a Pod that lived go first, and the others only under pressure', async (t) => {
  const node = nodeOf(t, 2);
  const lived = await runOnce(node, 1, 10_000);
  const failed = await runOnce(node, 2, 1_000);
  const third = await attach(node.deps, addOf(3), PATIENT);
  t.is(third.kind === 'attached' ? third.lease.addresses[0]?.ip : third.kind, failed);
  t.is(await node.cutShort(), 0);
  const fourth = await attach(node.deps, addOf(4), PATIENT);
  t.is(fourth.kind === 'attached' ? fourth.lease.addresses[0]?.ip : fourth.kind, lived);
  t.is(await node.cutShort(), 1);
  // It had not rested when it was given: what still comes for its owner before is not over with a sandbox that failed.
  await detach(node.deps, { containerId: 'c4', ifName: 'eth0' });
  t.is(node.state.pool.state.addresses.get(lived ?? '')?.isBrief, undefined);
});

test('a rest is brief no more after a restart', async (t) => {
  const node = nodeOf(t, 6);
  await runOnce(node, 1, 1_000);
  const again = createTestNode(6);
  t.teardown(() => again.close());
  again.state.restore(node.deps.journal.load());
  t.is(again.state.pool.demand(WARM, ONE_WAITS).desired, 7);
});

test('what cools is demand as far as the node can run Pods; Pods that are there, and held back addresses, always are', async (t) => {
  const node = nodeOf(t, 20);
  for (let n = 0; n < 8; n++) await attach(node.deps, addOf(n), PATIENT);
  node.clock.advance(10_000);
  for (let n = 0; n < 6; n++) await detach(node.deps, { containerId: `c${n}`, ifName: 'eth0' });
  const desired = (outside: { waiting: number; maxPods?: number; floor?: number }) =>
    node.state.pool.demand(WARM, { floor: 0, ...outside }).desired;
  t.is(desired({ waiting: 0 }), 8 + 5);
  t.is(desired({ waiting: 0, maxPods: 4 }), 4 + 5);
  t.is(desired({ waiting: 5, maxPods: 4 }), 7 + 5);
  t.is(desired({ waiting: 0, maxPods: 4, floor: 10 }), 10 + 5);
  node.clock.advance(node.deps.settings.ipCooldownMs);
  node.state.registeredWaitMs = 7_200_000;
  node.state.acceptRegistered(['10.0.0.10', '10.0.0.11', '10.0.0.12', '10.0.0.13']);
  endCooldowns(node.deps);
  t.is(desired({ waiting: 0, maxPods: 2 }), 2 + 4 + 5, 'no Pod can have those that load balancers have');
});
