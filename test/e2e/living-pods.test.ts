import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { partOf } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openTrial, type Trial } from './support/trial.ts';

// What says that a Pod lives, and what does not: lists of container runtimes, marks in the kernel, links of other programs.

async function loseJournal(trial: Trial): Promise<void> {
  await trial.killAgent();
  for (const name of readdirSync(trial.agent.stateDir))
    if (name.startsWith('journal')) rmSync(join(trial.agent.stateDir, name), { recursive: true });
}

/** All addresses that new Pods get, until there is none left. */
async function takeAll(trial: Trial): Promise<readonly string[]> {
  const ips: string[] = [];
  for (;;) {
    const answer = await trial.tryAdd(await trial.newPod());
    if (answer.result === undefined) return ips;
    ips.push(
      ...(answer.result['ips'] as readonly { address: string }[]).map(({ address }) => address.split('/')[0] ?? ''),
    );
  }
}

for (const ruleMode of partOf(['compact', 'per-pod'] as const, (mode) => mode === 'compact'))
  test(`agent: the address of a living Pod that another program wired is given to nobody, ${ruleMode}`, async (t) => {
    t.timeout(120_000);
    const trial = await openTrial({
      ruleMode,
      ipsPerEni: 3,
      flags: { 'add-wait': '1s', 'force-reuse-after': '500ms' },
    });
    try {
      await trial.killAgent();
      const ips = trial.vpc.assignedIps('eni-1').map(({ ip }) => ip);
      const [atStart = '', later = ''] = ips;
      await wireStranger(trial, atStart, 0);
      await trial.startAgent();
      await wireStranger(trial, later, 1);
      const given = await takeAll(trial);
      t.deepEqual(
        given.filter((ip) => [atStart, later].includes(ip)),
        [],
      );
      t.is(given.length, 4);
      t.true(await trial.node.netns.ping(atStart), 'the stranger still has its packets');
      t.true(await trial.node.netns.ping(later));
    } finally {
      await trial.close();
    }
  });

type Loss = readonly [
  ruleMode: 'compact' | 'per-pod',
  what: string,
  lose: (trial: Trial, link: string) => Promise<unknown>,
];

const MOST = 'alias, group and route';

/** Marks of a Pod that another program may take away while no agent runs. */
const LOSSES: readonly Loss[] = [
  ['compact', 'the alias', async ({ node }, link) => node.netns.ip('link', 'set', link, 'alias', 'web')],
  ['per-pod', 'the alias', async ({ node }, link) => node.netns.ip('link', 'set', link, 'alias', 'web')],
  ['compact', 'the group', async ({ node }, link) => node.netns.ip('link', 'set', link, 'group', '0')],
  [
    'compact',
    MOST,
    async ({ node }, link) => {
      await node.netns.ip('link', 'set', link, 'alias', 'web', 'group', '77');
      await node.netns.ip('route', 'flush', 'table', '3999', 'dev', link);
    },
  ],
];

for (const [ruleMode, what, lose] of partOf(LOSSES, ([mode, lost]) => mode === 'compact' && lost !== MOST))
  test(`agent: a Pod without ${what} is adopted when the journal is lost, ${ruleMode}`, async (t) => {
    t.timeout(120_000);
    const trial = await openTrial({
      ruleMode,
      ipsPerEni: 2,
      flags: { 'add-wait': '1s', 'force-reuse-after': '500ms' },
    });
    try {
      const pods = [await trial.addPod(), await trial.addPod()] as const;
      const [{ ip, netns }] = pods;
      const alias = `tke-eni/${pods[0].containerId}/eth0`;
      const links = await trial.node.netns.ipJson('link');
      const link = String(links.find((one) => one['ifalias'] === alias)?.['ifname']);
      await loseJournal(trial);
      // The others stop packets until the agent has put them back.
      const pings =
        what === 'the alias' ? netns.start(['ping', '-n', '-q', '-i', '0.1', trial.vpc.outside.ip]) : undefined;
      await lose(trial, link);
      await trial.startAgent();
      await trial.settle('after the adoption');
      const [repaired] = await trial.node.netns.ipJson('link', 'show', link);
      t.is(repaired?.['ifalias'], alias);
      const given = await takeAll(trial);
      t.is(given.length, 2);
      for (const pod of pods) t.false(given.includes(pod.ip));
      t.true(await netns.ping(trial.vpc.outside.ip));
      await pings?.stop('SIGINT');
      if (pings !== undefined) t.regex(pings.stdout, / 0% packet loss/);
      await trial.delete(pods[0]);
      t.false((await trial.node.netns.ipJson('link')).some((one) => one['ifname'] === link));
      await waitUntil(async () => (await takeAll(trial)).includes(ip), { what: 'the address is given again' });
    } finally {
      await trial.close();
    }
  });

/** As the closed product does it: a veth, a route in main, rules without a protocol. */
async function wireStranger(trial: Trial, ip: string, at: number): Promise<void> {
  const { node } = trial;
  const netns = (await trial.newPod()).netns.path;
  await node.netns.ip('link', 'add', `strange${at}`, 'type', 'veth', 'peer', 'name', `in${at}`, 'netns', netns);
  await node.netns.ip('link', 'set', `strange${at}`, 'up');
  await node.netns.run([
    'nsenter',
    `--net=${netns}`,
    'sh',
    '-ec',
    `ip address add ${ip}/32 dev in${at}; ip link set in${at} up; ip route replace default dev in${at}`,
  ]);
  await node.netns.ip('route', 'add', `${ip}/32`, 'dev', `strange${at}`);
}
