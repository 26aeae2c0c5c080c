import test, { type ExecutionContext } from 'ava';
import { attach } from '../../agent/attachment/attach.ts';
import { detach } from '../../agent/attachment/detach.ts';
import { type OpsDeps, openOps } from '../../agent/open-ops.ts';
import { EventHub } from '../../agent/recorder/event-hub.ts';
import { FlightRecorder } from '../../agent/recorder/flight-recorder.ts';
import { DEFAULT_BACKOFF_LIMITS } from '../../agent/repair/decide-backoff.ts';
import { FightDetector } from '../../agent/repair/fight-detector.ts';
import type { HostKernel } from '../../agent/repair/reconcile.ts';
import { addOf, createTestNode, PATIENT, type TestNode } from './use-cases/fixtures.ts';

/** The three clocks of a machine, each far from the others. Of the second, ADD and DEL are 20 s ago. */
const MONOTONIC_MS = 61_000;
const BOOT_MS = 1_020_000;
const WALL_MS = Date.UTC(2026, 2, 1);

type Changes = { readonly [K in 'cluster' | 'readiness']?: Partial<OpsDeps[K]> } & {
  readonly config?: Partial<OpsDeps['components']['config']>;
  readonly runtime?: Partial<Pick<OpsDeps['components'], 'kubeUse'>>;
};

/** Opens the ops service of a node without a primary interface, 60 s after the agent's start. */
function opsOf(t: ExecutionContext, { config, cluster, readiness, runtime }: Changes = {}) {
  const node: TestNode = createTestNode(3);
  t.teardown(node.close);
  const { state, deps } = node;
  const clock = {
    nowMs: () => WALL_MS,
    monotonicMs: () => MONOTONIC_MS,
    bootMs: () => BOOT_MS,
    sleep: async () => {},
  };
  const passes: string[] = [];
  const forgets: string[] = [];
  // Without a primary interface nothing is observed.
  const kernel = { invalidateNft: () => void forgets.push('nft') } as HostKernel;
  const ops = openOps({
    components: {
      config: {
        ...{ ipCooldownMs: 120_000, nodeName: '', supplySource: 'file', grWiring: 'bridge' },
        ...{ enableQuickRelease: false, releaseIntervalMs: 120_000, ...config },
      },
      host: { openExplainer: () => ({ explain: async () => ({ declined: 'nobody asks' }) }) },
      ...runtime,
      ...{ state, metrics: deps.metrics as OpsDeps['components']['metrics'] },
      ...{ recorder: new FlightRecorder(), hub: new EventHub(), programs: undefined, view: undefined },
      ...{ clock, log: deps.log, journal: deps.journal },
      finder: { primary: () => undefined },
      reconcile: {
        ...{ clock, kernel, state },
        fights: new FightDetector(DEFAULT_BACKOFF_LIMITS),
        nodeNetwork: () => undefined,
      },
    },
    readiness: { notReady: undefined, ...readiness },
    loop: {
      pass: async (cause) => {
        passes.push(cause);
        return { done: [], failed: [], paused: [], conflicts: [], isStale: true };
      },
      runExclusive: (work) => work(),
      kick: (cause) => void passes.push(`${cause} again`),
    },
    cluster:
      cluster === undefined
        ? undefined
        : {
            warm: () => ({ min: 1, max: 1 }),
            outside: () => ({ waiting: 0, floor: 0 }),
            silenceMs: () => 0,
            apiFailures: () => [],
            ...cluster,
          },
    startedMs: 1_000,
  });
  return { ...node, ops, passes, forgets };
}

const UNASKED = { runtimeHandlers: false };

test('openOps: pool measures a cooldown with the clock of the boot', async (t) => {
  const { ops, deps } = opsOf(t);
  await attach(deps, addOf(1), PATIENT);
  await detach(deps, { containerId: 'c1', ifName: 'eth0' });
  t.is((await ops.pool(UNASKED)).addresses?.[0]?.coolRemainingMs, 100_000);
});

test('openOps: summary measures durations with the monotonic clock', async (t) => {
  const { ops } = opsOf(t, { readiness: { lastPass: { endedMs: 51_000, cause: 'timer' } } });
  const summary = await ops.summary();
  t.is(summary.uptimeMs, 60_000);
  t.is(summary.lastPassAgeMs, 10_000);
});

test('openOps: without a cluster, node name, warm targets and demand are those of the supply and the ADDs', async (t) => {
  const { ops, state } = opsOf(t);
  state.addsWaiting.set('c9/eth0', { podNamespace: 'ns', podName: 'late' });
  t.like(await ops.pool(UNASKED), { warmMin: 5, warmMax: 5, demand: 6 });
  t.like(await ops.summary(), { nodeName: 'n1', supplySource: 'file', api: undefined });
});

test('openOps: with a cluster, they are those of the cluster', async (t) => {
  const kubeUse = () => ({ qps: 5, burst: 10, calls: 3, failed: 0, throttled: 0, throttledMs: 0, tokensLeft: 9 });
  const { ops } = opsOf(t, {
    config: { nodeName: 'n7', supplySource: 'cluster' },
    cluster: { outside: () => ({ waiting: 2, floor: 0 }), silenceMs: () => 4_000 },
    runtime: { kubeUse },
  });
  t.like(await ops.pool(UNASKED), { warmMin: 1, warmMax: 1, demand: 3 });
  const { api, ...rest } = await ops.summary();
  t.like(rest, { nodeName: 'n7', supplySource: 'cluster' });
  t.like(api, { calls: 3, silenceMs: 4_000, heard: true });
});

test('openOps: summary tells why no ADD is served', async (t) => {
  const { ops } = opsOf(t, { readiness: { notReady: 'the first pass is running' } });
  const { status } = await ops.summary();
  t.not(status?.code, 0);
  t.regex(`${status?.msg} ${status?.details}`, /the first pass is running/);
});

for (const [what, request, passes] of [
  ['a repair runs a pass, and another one when an ADD came in between', { dryRun: false, ruleMode: '' }, 2],
  ['a dry run runs none', { dryRun: true, ruleMode: '' }, 0],
  ['nor does the preview of a rule mode', { dryRun: true, ruleMode: 'per-pod' }, 0],
] as const) {
  test(`openOps: ${what}, and tells that there is no primary interface`, async (t) => {
    const scene = opsOf(t);
    const reply = await scene.ops.repair(request);
    t.regex(reply.error?.msg ?? '', /no primary interface yet/);
    t.is(reply.dryRun, request.dryRun);
    t.is(scene.passes.length, passes);
    t.deepEqual(scene.forgets, ['nft'], 'nftables is read again');
  });
}

for (const [ruleMode, dryRun, message] of [
  ['odd', true, /"odd" is not known/],
  ['per-pod', false, /can be asked for, not set/],
] as const) {
  test(`openOps: refuses rule mode ${ruleMode}${dryRun ? '' : ' without a dry run'}, with an answer`, async (t) => {
    const reply = await opsOf(t).ops.repair({ dryRun, ruleMode });
    t.regex(reply.error?.msg ?? '', message);
  });
}

test('openOps: recorder, watchers and close', (t) => {
  const { ops } = opsOf(t);
  t.deepEqual(ops.recorder('').pods, []);
  t.is(ops.watchers(), 0);
  ops.close();
});
