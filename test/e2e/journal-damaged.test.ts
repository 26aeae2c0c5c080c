import { closeSync, openSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { IS_LONG, longTest, shortTest } from '../support/suite-part.ts';
import { describeLoss, startTraffic } from '../support/traffic.ts';
import { withSeed } from '../support/with-seed.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial, type TrialSpec } from './support/trial.ts';

type Damages = Readonly<Record<string, (stateDir: string, random: () => number) => void>>;

/** What others, or a lost mount, may do to the agent's memory, and a running agent sees. Each gets the state folder and a source of noise. */
const SEEN_DAMAGES: Damages = {
  'is deleted': (dir) => {
    for (const name of readdirSync(dir)) rmSync(join(dir, name));
  },
  'is deleted with its folder': (dir) => rmSync(dir, { recursive: true }),
  'is cut to nothing': (dir) => truncateSync(join(dir, 'journal.db'), 0),
  'is cut in a page': (dir) => truncateSync(join(dir, 'journal.db'), 5_000),
  'has lost the file that undoes half a transaction': (dir) => rmSync(join(dir, 'journal.db-journal')),
};

/** Adds what no running agent can see, for it reads a page once; the next start does. */
const DAMAGES: Damages = {
  ...SEEN_DAMAGES,
  'is overwritten with noise': (dir, random) => {
    const { size } = statSync(join(dir, 'journal.db'));
    writeFileSync(join(dir, 'journal.db'), noise(size, random));
  },
  'is overwritten behind its header': (dir, random) => {
    const fd = openSync(join(dir, 'journal.db'), 'r+');
    writeSync(fd, noise(100_000, random), 0, 100_000, 4_096);
    closeSync(fd);
  },
};

/** What `make test` tries of the damages. */
const SHORT: readonly string[] = ['is deleted', 'is overwritten with noise'];

function noise(byteCount: number, random: () => number): Buffer {
  return Buffer.from(Array.from({ length: byteCount }, () => random() * 256));
}

/** Two living Pods whose every packet is counted, on a node that may or may not have a runtime to ask. */
type Lives = {
  readonly trial: Trial;
  readonly pods: readonly [AttachedPod, AttachedPod];
  readonly random: () => number;
};

const withLives = test.macro(
  async (t: ExecutionContext, spec: TrialSpec, body: (t: ExecutionContext, lives: Lives) => Promise<void>) => {
    t.timeout(240_000);
    const trial = await openTrial({ ipsPerEni: 4, ...spec, flags: { 'ip-cooldown': '500ms', ...spec.flags } });
    try {
      const pods = [await trial.addPod(), await trial.addPod()] as const;
      const [a, b] = pods;
      const traffic = await startTraffic(
        a,
        { netns: trial.vpc.outside.netns, ip: trial.vpc.outside.ip },
        { rate: 500 },
      );
      try {
        await withSeed(t, (seed) => body(t, { trial, pods, random: seededRandom(seed) }));
        t.true(await b.netns.ping(a.ip), 'the Pods reach each other');
      } finally {
        t.deepEqual(describeLoss(await traffic.finish()), [], 'no packet of a living Pod was lost');
      }
    } finally {
      await trial.close();
    }
  },
);

/** A new Pod gets an address that no living one has; then it goes again. */
async function tryNewPod(t: ExecutionContext, { trial, pods }: Lives, where: string): Promise<void> {
  const fresh = await trial.addPod();
  t.false(
    pods.some(({ ips }) => ips.some((ip) => fresh.ips.includes(ip))),
    `${where}: ${fresh.ips} was given twice`,
  );
  t.true(await fresh.netns.ping(trial.vpc.outside.ip), `${where}: the new Pod has no network`);
  await trial.settle(`${where}, with a new Pod`);
  await trial.delete(fresh);
  await trial.settle(`${where}, without the new Pod`);
}

/** Takes all addresses there are, and more: each is given once. */
async function takeAll(t: ExecutionContext, { trial, pods }: Omit<Lives, 'random'>, where: string): Promise<void> {
  const all: AttachedPod[] = [];
  for (let count = 0; count < 6; count++) all.push(await trial.addPod());
  const ips = [...pods, ...all].flatMap((pod) => pod.ips);
  t.deepEqual(new Set(ips).size, ips.length, `${where}: ${ips}`);
  const tooMany = await trial.newPod();
  t.is((await trial.tryAdd(tooMany)).error?.code, 101, `${where}: more addresses than there are`);
  await trial.delete(tooMany);
  await trial.settle(`${where}, with all addresses given`);
  for (const pod of all) await trial.delete(pod);
}

async function damageAndRestart(t: ExecutionContext, lives: Lives, isRunning: boolean): Promise<void> {
  const { trial } = lives;
  for (const [what, damage] of Object.entries(DAMAGES).filter(([name]) => IS_LONG || SHORT.includes(name))) {
    const where = `journal ${what} while the agent ${isRunning ? 'runs, which is killed then' : 'is dead'}`;
    if (isRunning) damage(trial.agent.stateDir, lives.random);
    await trial.killAgent();
    if (!isRunning) damage(trial.agent.stateDir, lives.random);
    await trial.startAgent();
    await trial.settle(where);
    await tryNewPod(t, lives, where);
  }
  await takeAll(t, lives, 'after every damage');
  // What was adopted can be given back: by its lease, wherever that came from.
  const [, second] = lives.pods;
  const again = await trial.newPod();
  await trial.add(again);
  await trial.delete(again);
  t.is((await trial.tryDelete(second)).exitCode, 0);
  await trial.settle('after the DEL of an adopted Pod');
  await trial.add(second);
  await trial.settle('after the ADD of the same sandbox');
}

async function damageAndGoOn(t: ExecutionContext, lives: Lives): Promise<void> {
  for (const [what, damage] of Object.entries(SEEN_DAMAGES)) {
    damage(lives.trial.agent.stateDir, lives.random);
    const fresh = await lives.trial.addPod();
    await lives.trial.settle(`journal ${what}, and the agent goes on`);
    await lives.trial.delete(fresh);
  }
  await takeAll(t, lives, 'after every damage under a running agent');
  await lives.trial.killAgent();
  await lives.trial.startAgent();
  await lives.trial.settle('after all of it and a restart');
}

for (const ruleMode of IS_LONG ? (['compact', 'per-pod'] as const) : (['compact'] as const)) {
  test.serial(
    `agent: adopts living Pods when its journal was damaged while it was dead, ${ruleMode}`,
    withLives,
    { ruleMode, isDual: true },
    (t, lives) => damageAndRestart(t, lives, false),
  );
}
longTest.serial(
  'agent: adopts living Pods when its journal was damaged under it before it was killed',
  withLives,
  { ruleMode: 'compact' },
  (t, lives) => damageAndRestart(t, lives, true),
);
for (const ruleMode of ['compact', 'per-pod'] as const) {
  longTest.serial(
    `agent: adopts living Pods when its journal was damaged and there is no runtime to ask, ${ruleMode}`,
    withLives,
    { ruleMode, hasRuntime: false },
    (t, lives) => damageAndRestart(t, lives, false),
  );
}
shortTest.serial(
  'agent: writes its journal again when that is damaged under it',
  withLives,
  { ruleMode: 'compact' },
  damageAndGoOn,
);

/** Everything that the agent wrote but the links: what is left to adopt from is their aliases and groups, and the runtime. */
async function flushNetwork({ node }: Trial): Promise<void> {
  for (const family of ['-4', '-6']) {
    for (const table of ['3999', '4003', '4004']) {
      // Not every mode and family has each of them.
      await node.netns.tryRun(['ip', family, 'route', 'flush', 'table', table]);
    }
    await node.netns.ip(family, 'route', 'flush', 'table', 'main', 'proto', '84');
    const rules = await node.netns.ipJson('-N', family, 'rule');
    const ours = rules.filter((rule) => rule['protocol'] === '84');
    for (const rule of ours) await node.netns.ip(family, 'rule', 'delete', 'pref', String(rule['priority']));
  }
  await node.netns.nft('delete table inet tke_eni\n');
}

const LOST: readonly TrialSpec[] = [
  { ruleMode: 'compact', isDual: true },
  { ruleMode: 'per-pod' },
  { ruleMode: 'compact', hasRuntime: false },
];

for (const spec of LOST) {
  const from = spec.hasRuntime === false ? 'links alone' : 'links and runtime';
  longTest.serial(
    `agent: adopts Pods from ${from} when journal, routes, rules and nftables are all gone, ${spec.ruleMode}`,
    async (t) => {
      t.timeout(120_000);
      const trial = await openTrial({ ipsPerEni: 4, ...spec, flags: { 'ip-cooldown': '500ms' } });
      try {
        const pods = [await trial.addPod(), await trial.addPod()] as const;
        await trial.killAgent();
        rmSync(trial.agent.stateDir, { recursive: true });
        await flushNetwork(trial);
        await trial.startAgent();
        await trial.settle('after everything but the links was lost');
        for (const pod of pods) t.true(await pod.netns.ping(trial.vpc.outside.ip), pod.ip);
        await takeAll(t, { trial, pods }, 'after everything but the links was lost');
        for (const pod of pods) await trial.delete(pod);
        await trial.settle('after the DELs');
      } finally {
        await trial.close();
      }
    },
  );
}
