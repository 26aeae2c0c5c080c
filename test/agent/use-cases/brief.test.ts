import test, { type ExecutionContext } from 'ava';
import { attach } from '../../../agent/attachment/attach.ts';
import { detach } from '../../../agent/attachment/detach.ts';
import { endCooldowns } from '../../../agent/attachment/end-cooldowns.ts';
import { createMetrics } from '../../../agent/observability/metrics.ts';
import { sumMetric } from '../../../agent/ops/summary-reply.ts';
import type { PodFinding } from '../../../agent/pool/brief.ts';
import { addOf, createTestNode, PATIENT, type TestNode } from './fixtures.ts';

const WARM = { min: 5, max: 5 };

type BriefNode = ReturnType<typeof nodeOf>;

/** A node whose API server shows this of every Pod. */
function nodeOf(t: ExecutionContext, ipCount: number, finding: PodFinding = 'none') {
  const node = createTestNode(ipCount);
  t.teardown(() => node.close());
  const metrics = createMetrics();
  const cutShort = async () => sumMetric(await metrics.registry.getMetricsAsJSON(), 'tke_eni_forced_reuse_total');
  const asked: string[] = [];
  node.state.podFindings = { of: () => finding, ask: ({ podUid }) => void asked.push(podUid) };
  return { ...node, deps: { ...node.deps, metrics }, cutShort, asked };
}

/** The n-th sandbox of a Pod. */
const sandboxOf = (n: number) => addOf(n, { podName: 'p', podUid: 'uid-p' });

/** Gives a sandbox an address and ends it `livedMs` later; kubelet makes the next one 2 s after that. */
async function runOnce({ deps, clock }: TestNode, n: number, livedMs: number): Promise<string | undefined> {
  const outcome = await attach(deps, sandboxOf(n), PATIENT);
  clock.advance(livedMs);
  await detach(deps, { containerId: `c${n}`, ifName: 'eth0' });
  clock.advance(2_000);
  endCooldowns(deps);
  return outcome.kind === 'attached' ? outcome.lease.addresses[0]?.ip : outcome.kind;
}

function desiredOf({ state, clock }: BriefNode, outside: { waiting?: number; maxPods?: number; floor?: number } = {}) {
  return state.pool.demand(WARM, { waiting: 1, floor: 0, nowMs: clock.bootMs(), ...outside }).desired;
}

for (const [what, livedMs, tries] of [
  ['at once', 1_000, 17],
  ['by the timeout of another plugin', 30_000, 12],
] as const)
  test(`a Pod whose sandboxes fail ${what} after our ADD collects no addresses, and each try gets one`, async (t) => {
    const node = nodeOf(t, 3);
    for (let n = 0; n < tries; n++) {
      t.regex((await runOnce(node, n, livedMs)) ?? 'nothing', /^10\.0\.0\.1\d$/);
      t.is(desiredOf(node), 6);
    }
    t.is(node.state.pool.counts().cooling, 3, 'each address rests');
    t.is(node.flushed.length, tries - 3, 'one that is given before its rest ended has no connections');
    t.is(await node.cutShort(), 0, 'that is no pressure on the pool');
  });

for (const [what, finding, livedMs] of [
  ['that a Pod lived with', 'another', 10_000],
  ['of a Pod whose status may lag', 'none', 3_000],
  ['of a Pod that is not followed, absent or another one', 'unknown', 1_000],
  ['of a sandbox that lived for long, of such a Pod', 'unknown', 10_000],
  ['of a Pod that the API server was not asked for yet', 'none-yet', 10_000],
] as const)
  test(`an address ${what} rests, and counts as demand`, async (t) => {
    const node = nodeOf(t, 6, finding);
    for (let n = 0; n < 3; n++) await runOnce(node, n, livedMs);
    t.is(desiredOf(node), 9);
    t.deepEqual(node.flushed, []);
  });

test('where the watch is silent the API server is asked for the Pod, once its sandbox is old enough', async (t) => {
  const node = nodeOf(t, 6, 'none-yet');
  await runOnce(node, 1, 1_000);
  await runOnce(node, 2, 4_000);
  t.deepEqual(node.asked, []);
  t.is(desiredOf(node), 7, 'the second');
  await runOnce(node, 3, 30_000);
  await runOnce(node, 4, 30_000);
  t.deepEqual(node.asked, ['uid-p', 'uid-p']);
  t.is(desiredOf(node), 9);
  node.state.acceptFailed('another');
  t.is(desiredOf(node), 9);
  node.state.acceptFailed('uid-p');
  t.is(desiredOf(node), 7);
});

test('of resting addresses those without a Pod that lived go first, and the others only under pressure', async (t) => {
  const node = nodeOf(t, 2);
  node.state.podFindings = { of: () => 'another', ask: () => {} };
  const lived = await runOnce(node, 1, 10_000);
  const failed = await runOnce(node, 2, 1_000);
  const third = await attach(node.deps, addOf(3), PATIENT);
  t.is(third.kind === 'attached' ? third.lease.addresses[0]?.ip : third.kind, failed);
  t.is(await node.cutShort(), 0);
  const fourth = await attach(node.deps, sandboxOf(4), PATIENT);
  t.is(fourth.kind === 'attached' ? fourth.lease.addresses[0]?.ip : fourth.kind, lived);
  t.is(await node.cutShort(), 1);
  // It had not rested when it was given: what still comes for its owner before is not over with a sandbox that failed.
  await detach(node.deps, { containerId: 'c4', ifName: 'eth0' });
  t.is(node.state.pool.state.addresses.get(lived ?? '')?.isBrief, undefined);
});

test('after a restart all rests are demand', async (t) => {
  const node = nodeOf(t, 6);
  await runOnce(node, 1, 1_000);
  const again = nodeOf(t, 6);
  again.state.restore(node.deps.journal.load());
  t.is(desiredOf(again), 7);
});
