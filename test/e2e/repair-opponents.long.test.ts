import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { AF_INET } from '../../netlink/uapi/netlink.ts';
import type { Child } from '../../sim/support/child.ts';
import { waitUntil } from '../support/wait-until.ts';
import { deletionOfEniRule, startOpponent, tableOfEni } from './support/opponent.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// Programs that undo the agent's work for a long time. What it costs is printed: processor time of the agent and of the nft that it
// runs, pings that were lost, ADDs meanwhile, alarms, and how often an ENI became ready.

/** USER_HZ of every Linux on the supported machines. */
const TICKS_PER_SECOND = 100;
const FLUSHES = 60;
const FIGHT_MS = 21_000;
const ADDS = 20;
const ALARM = 'somebody keeps undoing this change';

/** Processor seconds of a process and of its children that have ended. @see proc_pid_stat(5) */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0) / TICKS_PER_SECOND;
}

/** Measures the share of a core that the agent takes from now on. */
function measureCpu(trial: Trial): () => number {
  const { pid } = trial.agent;
  const [startMs, before] = [performance.now(), cpuSeconds(pid)];
  return () => (cpuSeconds(pid) - before) / ((performance.now() - startMs) / 1_000);
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
const p99 = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b).at(Math.ceil(values.length * 0.99) - 1) ?? 0;

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b).at(Math.floor(values.length / 2)) ?? 0;

/** The share of echo requests that got no answer, by ping's own count. */
function lostShare(summary: string): number {
  const found = /([\d.]+)% packet loss/.exec(summary);
  if (found === null) throw new Error(`ping printed no summary: ${summary}`);
  return Number(found[1]) / 100;
}

function startPings(pod: AttachedPod, address: string): Child {
  return pod.netns.start(['ping', '-n', '-q', '-i', '0.02', '-W', '1', address]);
}

async function endPings(pings: Child): Promise<number> {
  await pings.stop('SIGINT');
  return lostShare(pings.stdout);
}

const countReady = (log: string): number => log.split('"ENI is ready"').length - 1;

test.serial('agent: somebody flushes all of nftables once a second for a minute', async (t) => {
  t.timeout(180_000);
  const trial = await openTrial({ ruleMode: 'compact' });
  t.teardown(() => trial.close());
  const pod = await trial.addPod();
  const logged = trial.agent.logs().length;
  const cpu = measureCpu(trial);
  const pings = startPings(pod, trial.vpc.outside.ip);
  for (let flush = 0; flush < FLUSHES; flush++) {
    await trial.node.netns.nft('flush ruleset\n');
    await sleep(1_000);
  }
  const lost = await endPings(pings);
  const share = cpu();
  t.log(
    `figure: one flush a second for ${FLUSHES} s: ${percent(lost)} of pings lost (goal 5 %), ${percent(share)} of a core (goal 10 %)`,
  );
  // The goal holds on a machine of its own (3.1 %); in a suite three such tests share the cores.
  t.true(lost < 0.15, `${percent(lost)} of pings lost`);
  t.true(share < 0.1, `${percent(share)} of a core`);
  t.true(countReady(trial.agent.logs().slice(logged)) <= FLUSHES / 10);
});

type Opponent = {
  readonly what: string;
  readonly request: (trial: Trial, table: number) => object;
  readonly rates: readonly number[];
};

/** Added to the index of an ENI's link, gives its table. */
const TABLE_BASE = 4_000;

const OPPONENTS: readonly Opponent[] = [
  {
    what: 'the rule of an ENI',
    request: deletionOfEniRule,
    rates: [100, 1_000],
  },
  {
    what: 'the default route of an ENI',
    request: (_trial, table) => ({ object: 'route', verb: 'delete', spec: { family: AF_INET, table } }),
    rates: [100, 1_000],
  },
  {
    what: 'the flag up of an ENI',
    request: (_trial, table) => ({ object: 'link', verb: 'set', spec: { ifindex: table - TABLE_BASE, up: false } }),
    rates: [100],
  },
  {
    what: 'a setting of an ENI',
    request: () => ({ file: '/proc/sys/net/ipv4/conf/eth1/forwarding', value: '0' }),
    rates: [1_000],
  },
];

/** Milliseconds that each of some ADDs took, by the clock of the caller. */
async function timeAdds(
  trial: Trial,
  count: number,
): Promise<{ readonly ms: readonly number[]; readonly eniIds: readonly string[] }> {
  const ms: number[] = [];
  const eniIds: string[] = [];
  for (let number = 0; number < count; number++) {
    const pod = await trial.newPod();
    const startMs = performance.now();
    const added = await trial.add(pod);
    ms.push(performance.now() - startMs);
    eniIds.push(trial.vpc.eniOf(added.ip) ?? '');
    await trial.delete(added);
  }
  return { ms, eniIds };
}

async function fight(t: ExecutionContext, { what, request }: Opponent, rate: number): Promise<void> {
  const trial = await openTrial({ ruleMode: 'compact', ipsPerEni: 40 });
  try {
    const pods = [await trial.addPod(), await trial.addPod(), await trial.addPod(), await trial.addPod()];
    const other = pods.find(({ ip }) => trial.vpc.eniOf(ip) === 'eni-2');
    const calm = await timeAdds(trial, ADDS);
    const table = await tableOfEni(trial, 'eni-1');
    const logged = trial.agent.logs().length;
    const since = (): string => trial.agent.logs().slice(logged);
    const pings = other === undefined ? undefined : startPings(other, trial.vpc.outside.ip);
    const startMs = performance.now();
    const cpu = measureCpu(trial);
    const opponent = startOpponent(trial, request(trial, table), rate);
    try {
      await waitUntil(() => since().includes(ALARM), { what: 'the alarm', explain: () => trial.lastWords() });
      const alarmMs = performance.now() - startMs;
      await sleep(FIGHT_MS - (performance.now() - startMs));
      const share = cpu();
      const during = await timeAdds(trial, ADDS);
      const readyCount = countReady(since());
      const seconds = (performance.now() - startMs) / 1_000;
      const lost = pings === undefined ? 0 : await endPings(pings);
      await opponent.stop('SIGTERM');
      const stoppedMs = performance.now();
      t.log(
        [
          `figure: ${what}, ${rate} times a second: ${percent(share)} of a core (goal 25 %)`,
          `alarm after ${alarmMs.toFixed(0)} ms (goal 10 s), ENIs became ready ${readyCount} times in ${seconds.toFixed(0)} s`,
          `ADD p99 ${p99(calm.ms).toFixed(0)} ms before, ${p99(during.ms).toFixed(0)} ms meanwhile`,
          `${percent(lost)} of pings of the other ENI lost; opponent: ${opponent.stdout.trim().split('\n').at(-1)}`,
        ].join('; '),
      );
      t.true(share < 0.25, `${percent(share)} of a core`);
      t.true(readyCount <= Math.ceil(seconds / 10), `ENIs became ready ${readyCount} times`);
      // The worst of twenty is the machine's: others run beside it.
      t.true(median(during.ms) < 3 * median(calm.ms) + 100, 'ADDs on the other ENI');
      t.false(during.eniIds.includes('eni-1'), 'no ADD is served by the ENI that is not set up');
      t.true(lost < 0.01, `${percent(lost)} of pings of the other ENI lost`);
      await trial.settle('after the opponent left');
      await waitUntil(() => countReady(since()) > readyCount, { what: 'the ENI ready again', timeoutMs: 60_000 });
      t.log(`figure: ready ${((performance.now() - stoppedMs) / 1_000).toFixed(1)} s after the opponent left`);
    } finally {
      await opponent.stop('SIGKILL');
    }
  } finally {
    await trial.close();
  }
}

for (const opponent of OPPONENTS) {
  for (const rate of opponent.rates) {
    test.serial(`agent: somebody undoes ${opponent.what} ${rate} times a second`, async (t) => {
      t.timeout(180_000);
      await fight(t, opponent, rate);
    });
  }
}

test.serial('agent: somebody flushes all of nftables twenty times a second: ADDs fail with the reason', async (t) => {
  t.timeout(180_000);
  const trial = await openTrial({ ruleMode: 'compact' });
  t.teardown(() => trial.close());
  const pod = await trial.addPod();
  const logged = trial.agent.logs().length;
  const cpu = measureCpu(trial);
  const flush = 'for i in $(seq 1200); do nft flush ruleset; sleep 0.05; done';
  const opponent = trial.node.netns.start(['bash', '-c', flush]);
  t.teardown(() => opponent.stop('SIGKILL'));
  const status = async () =>
    (await trial.node.call('STATUS', undefined, { conf: trial.node.conf({ cniVersion: '1.1.0' }) })).error;
  const says = /another program keeps undoing: nft -f - # table inet tke_eni/;
  await waitUntil(async () => (await status())?.code === 51, { what: 'STATUS 51', explain: () => trial.lastWords() });
  t.regex((await status())?.details ?? '', says);
  const refused = await trial.tryAdd(await trial.newPod());
  t.is(refused.error?.code, 103);
  t.regex(refused.error?.details ?? '', says);
  t.is((await status())?.code, 51, 'as long as it goes on');
  const share = cpu();
  await opponent.stop('SIGKILL');
  await waitUntil(() => pod.netns.ping(trial.vpc.outside.ip, { waitMs: 300 }), { what: 'packets of the Pod' });
  await waitUntil(async () => (await status()) === undefined, { what: 'STATUS', timeoutMs: 60_000, everyMs: 200 });
  t.log(`figure: ${percent(share)} of a core; ENIs became ready ${countReady(trial.agent.logs().slice(logged))} times`);
  t.true(share < 0.25, `${percent(share)} of a core`);
  t.true(await (await trial.addPod()).netns.ping(trial.vpc.outside.ip));
});
