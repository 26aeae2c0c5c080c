import test, { type ExecutionContext } from 'ava';
import { waitUntil } from '../support/wait-until.ts';
import { deletionOfEniRule, startOpponent, tableOfEni } from './support/opponent.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// Somebody undoes a repair again and again, or has put something of their own where ours belongs.

const METRICS = [
  'bash',
  '-c',
  'exec 3<>/dev/tcp/127.0.0.1/61680; printf "GET /metrics HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3',
];

/** Reads one number of the agent's metrics; all label sets of the name added up. */
async function metric(trial: Trial, name: string): Promise<number> {
  const text = await trial.node.netns.run(METRICS);
  const values = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return values.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

const withPods = test.macro(
  async (
    t: ExecutionContext,
    ruleMode: 'compact' | 'per-pod',
    body: (t: ExecutionContext, trial: Trial, pods: readonly [AttachedPod, AttachedPod]) => Promise<void>,
  ) => {
    t.timeout(120_000);
    const trial = await openTrial({ ruleMode });
    try {
      await body(t, trial, [await trial.addPod(), await trial.addPod()]);
    } finally {
      await trial.close();
    }
  },
);

/** How often a second the adversary deletes the rule: much sooner than a repair counts as peace. */
const RATE = 100;

test('agent: backs off from a fight, says so, and repairs all else', withPods, 'compact', async (t, trial, pods) => {
  const logged = trial.agent.logs().length;
  const since = (): string => trial.agent.logs().slice(logged);
  const adversary = startOpponent(trial, deletionOfEniRule(trial, await tableOfEni(trial, 'eni-1')), RATE);
  try {
    await waitUntil(
      () => since().includes('somebody keeps undoing this change') && since().includes('ENI is not ready'),
      {
        what: 'a word on the fight',
        timeoutMs: 60_000,
        explain: () => trial.lastWords(),
      },
    );
    t.is(await metric(trial, 'tke_eni_fights_total'), 1);
    t.is(await metric(trial, 'tke_eni_fights'), 1);
    for (const pod of pods) {
      await trial.node.netns.ip('route', 'delete', `${pod.ip}/32`, 'table', '3999');
      await waitUntil(() => pod.netns.ping(trial.vpc.outside.ip, { waitMs: 300 }), {
        what: 'the route of a Pod, while the fight goes on',
        explain: () => trial.lastWords(),
      });
    }
    // A Pod can be made and ended beside the fight, on the other ENI.
    const fresh = await trial.addPod();
    t.is(trial.vpc.eniOf(fresh.ip), trial.enis[1]?.eniId);
    t.true(await fresh.netns.ping(trial.vpc.outside.ip));
    await trial.delete(fresh);
    t.true(adversary.isRunning, 'the adversary was there all the time');
  } finally {
    await adversary.stop('SIGTERM');
  }
  t.log(`the rule was deleted: ${adversary.stdout.trim().split('\n').at(-1)}`);
  // Nobody has to restart the agent: the next wait ends within seconds.
  await trial.settle('after the fight');
});

/** One thing that is not ours, where ours should be. */
type Occupation = {
  readonly what: string;
  /** `ip` arguments behind `add` and `delete`. */
  readonly object: (trial: Trial) => readonly [kind: 'rule' | 'route', ...args: string[]];
  /** What the agent's log and STATUS say of it. */
  readonly says: RegExp;
  /** False: worth a warning only. */
  readonly isGrave: boolean;
};

const OCCUPATIONS: readonly Occupation[] = [
  {
    what: 'a rule of theirs that equals one of ours',
    object: () => ['rule', 'pref', '512', 'lookup', '3999'],
    says: /priority 512 equals one of ours but has protocol \d+; delete it/,
    isGrave: true,
  },
  {
    what: 'a rule of theirs with bits of our marks',
    object: () => ['rule', 'pref', '600', 'fwmark', '0x10000/0xff0000', 'lookup', '99'],
    says: /priority 600 uses bits of our mark mask 0xff0000/,
    isGrave: true,
  },
  {
    what: 'a rule of theirs into our table',
    object: () => ['rule', 'pref', '700', 'from', '192.0.2.1', 'lookup', '4003'],
    says: /priority 700 is not ours but looks up our table 4003/,
    isGrave: true,
  },
  {
    what: 'a route of theirs in our table',
    object: () => ['route', '192.0.2.0/24', 'dev', 'eth1', 'table', '4003'],
    says: /in table 4003 is not ours, the table is/,
    isGrave: true,
  },
  {
    what: 'a route of theirs among those of our Pods',
    object: () => ['route', '192.0.2.0/24', 'dev', 'eth0', 'table', '3999'],
    says: /in table 3999 is not ours, the table is/,
    isGrave: true,
  },
  {
    what: 'a rule of theirs at our priority',
    object: () => ['rule', 'pref', '1536', 'from', '192.0.2.1', 'lookup', '99'],
    says: /priority 1536 is not ours but stands at our priority/,
    isGrave: false,
  },
];

async function occupy(t: ExecutionContext, trial: Trial, { what, object, says, isGrave }: Occupation): Promise<void> {
  const { netns } = trial.node;
  const [kind, ...args] = object(trial);
  const shown = () => netns.ip(kind, 'show', ...(kind === 'route' ? ['table', args.at(-1) ?? ''] : args.slice(0, 2)));
  const logged = trial.agent.logs().length;
  const status = async () =>
    (await trial.node.call('STATUS', undefined, { conf: trial.node.conf({ cniVersion: '1.1.0' }) })).error;
  // Where ours stands already, theirs can come only after ours went and before ours is back.
  trial.agent.kill('SIGSTOP');
  await netns.tryRun(['ip', kind, 'delete', ...args]);
  await netns.ip(kind, 'add', ...args);
  const before = await shown();
  trial.agent.kill('SIGCONT');
  await waitUntil(() => says.test(trial.agent.logs().slice(logged)), {
    what: `a word on ${what}`,
    explain: () => trial.lastWords(),
  });
  const answer = await status();
  if (isGrave) {
    t.is(answer?.code, 51, `${what}: STATUS says ${JSON.stringify(answer)}`);
    t.regex(answer?.details ?? '', says);
  } else {
    t.is(answer, undefined, `${what}: STATUS says ${JSON.stringify(answer)}`);
  }
  t.is(await shown(), before, `${what}: it was touched`);
  await netns.ip(kind, 'delete', ...args);
  await waitUntil(() => trial.agent.logs().slice(logged).includes('conflict is over'), {
    what: `the end of ${what}`,
    explain: () => trial.lastWords(),
  });
  await trial.settle(`without ${what}`);
  t.is(await status(), undefined, `without ${what}`);
}

test(
  "agent: what stands in the place of one Pod's route fails the CHECK of that Pod, and neither STATUS nor ADD",
  withPods,
  'compact',
  async (t, trial, pods) => {
    const { node, agent } = trial;
    const [pod, other] = pods;
    if (pod === undefined || other === undefined) throw new Error('the trial has Pods');
    const conf = node.conf({ cniVersion: '1.1.0' });
    const logged = agent.logs().length;
    const theirs = [pod.ip, 'dev', 'eth0', 'table', '3999', 'proto', 'static'];
    await node.netns.ip('route', 'replace', ...theirs);
    const says = new RegExp(`${pod.ip}/32 .* stands where ours should`);
    await waitUntil(() => says.test(agent.logs().slice(logged)), { what: 'a word on it' });
    const check = async (one: AttachedPod) =>
      (await node.call('CHECK', one, { conf: node.conf({ cniVersion: '1.1.0', prevResult: one.result }) })).error;
    t.regex(String((await check(pod))?.details), says);
    t.is(await check(other), undefined);
    t.is((await node.call('STATUS', undefined, { conf })).error, undefined);
    await trial.delete(await trial.addPod());
    t.is((await node.netns.ipJson('route', 'show', 'table', '3999', pod.ip))[0]?.['dev'], 'eth0', 'it was touched');
    await node.netns.ip('route', 'delete', ...theirs);
    await trial.settle('without it');
    t.is(await check(pod), undefined);
  },
);

test('agent: reports what stands in its place and leaves it alone', withPods, 'compact', async (t, trial, pods) => {
  for (const occupation of OCCUPATIONS) {
    await occupy(t, trial, occupation);
    for (const pod of pods) t.true(await pod.netns.ping(trial.vpc.outside.ip), occupation.what);
  }
});

test(
  'agent: reports an address that a DHCP client put on an ENI; Pods keep their network',
  withPods,
  'per-pod',
  async (t, trial, pods) => {
    const { netns } = trial.node;
    const address = `${trial.enis[0]?.primaryIp}/24`;
    await netns.ip('address', 'add', address, 'dev', 'eth1');
    await waitUntil(() => trial.agent.logs().includes(`eth1 has ${address}, whose connected route`), {
      what: 'a word on the second address',
      explain: () => trial.lastWords(),
    });
    await trial.settle('with a foreign address on an ENI');
    for (const pod of pods) t.true(await pod.netns.ping(trial.vpc.outside.ip));
    // The client goes and takes its address along, or, as some do, all there are.
    await netns.ip('-4', 'address', 'flush', 'dev', 'eth1');
    await waitUntil(() => trial.agent.logs().includes('conflict is over'), { what: 'the end of the conflict' });
    await trial.settle('without the foreign address');
    for (const pod of pods) t.true(await pod.netns.ping(trial.vpc.outside.ip));
  },
);
