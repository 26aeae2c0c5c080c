import { statSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { ADDRESS_STATE, type AgentEvent, EVENT_KIND, EVENT_OUTCOME } from '../../agent/api/ops-messages.ts';
import { readNodeRecord } from '../../agent/journal/node-file.ts';
import { buildExecutables } from '../../tools/build.ts';
import { readJournalFacts } from '../support/journal-facts.ts';
import { type OpsCaller, type OpsWatch, openOpsCaller } from '../support/ops-call.ts';
import { waitUntil } from '../support/wait-until.ts';
import { deletionOfEniRule, startOpponent, tableOfEni } from './support/opponent.ts';
import { runCli } from './support/run-cli.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial, type TrialSpec } from './support/trial.ts';

// What the real agent tells of itself over service Ops, judged by ip(8), the journal's rows and what was done to it.

const withOps = test.macro(
  async (
    t: ExecutionContext,
    spec: TrialSpec,
    body: (t: ExecutionContext, trial: Trial, ops: OpsCaller) => Promise<void>,
  ) => {
    t.timeout(240_000);
    const trial = await openTrial(spec);
    const ops = openOpsCaller(`unix:${trial.agent.socketPath}`);
    try {
      await body(t, trial, ops);
    } finally {
      ops.close();
      await trial.close();
    }
  },
);

async function podRoutes(trial: Trial): Promise<readonly string[]> {
  const routes = await trial.node.netns.ipJson('route', 'show', 'table', '3999');
  return routes.map((route) => String(route['dst'])).sort();
}

// The kernel sends no message when this setting changes.
const ACCEPT_RA = '/proc/sys/net/ipv6/conf/eth1/accept_ra';

async function acceptRa(trial: Trial): Promise<string> {
  return (await trial.node.netns.run(['cat', ACCEPT_RA])).trim();
}

const COMPACT: TrialSpec = {
  ruleMode: 'compact',
  ipsPerEni: 3,
  flags: { 'add-wait': '1s', 'force-reuse-after': '1s', 'ip-cooldown': '60s' },
};

test('Pool: agrees with the journal and the kernel', withOps, COMPACT, async (t, trial, ops) => {
  const pods = [await trial.addPod(), await trial.addPod(), await trial.addPod()] as const;
  await trial.delete(pods[2]);
  const { addresses, enis, waiting, families, hasSupply, supplyProblem, demand } = await ops.call('pool', {});
  const journal = readJournalFacts(join(trial.agent.stateDir, 'journal.db'));
  const inState = (state: number) => addresses.filter((address) => address.state === state);

  const inUse = inState(ADDRESS_STATE.ADDRESS_STATE_IN_USE);
  t.deepEqual(inUse.map(({ ip }) => ip).sort(), await podRoutes(trial));
  t.deepEqual(
    inUse.map(({ ip, containerId, ifName, eniId }) => ({ ip, key: `${containerId}/${ifName}`, eniId })).sort(byIp),
    journal.leases.map(({ ips, key, eniId }) => ({ ip: ips[0] ?? '', key, eniId })).sort(byIp),
  );
  t.deepEqual(
    new Set(inUse.map(({ podNamespace, podName }) => `${podNamespace}/${podName}`)),
    new Set([pods[0], pods[1]].map(({ namespace, name }) => `${namespace}/${name}`)),
  );
  const cooling = inState(ADDRESS_STATE.ADDRESS_STATE_COOLING);
  t.deepEqual(
    cooling.map(({ ip }) => ip),
    [pods[2].ip],
  );
  const remaining = cooling[0]?.coolRemainingMs ?? 0;
  t.true(remaining > 0 && remaining <= 60_000, `${remaining} ms of 60 s remain`);
  t.is(inState(ADDRESS_STATE.ADDRESS_STATE_FREE).length, 3);

  const links = await trial.node.netns.ipJson('link', 'show');
  for (const eni of enis) {
    const link = links.find(({ ifname }) => ifname === eni.ifname);
    t.is(link?.['address'], eni.mac);
    t.is(link?.['ifindex'], eni.ifindex);
    t.true(eni.ready);
  }
  t.deepEqual(
    enis.map(({ eniId, table, slot }) => ({ eniId, table, slot })),
    journal.enis.map(({ eniId, table, slot }) => ({ eniId, table, slot })),
  );
  t.deepEqual(
    { families, waiting, hasSupply, supplyProblem },
    { families: [4], waiting: [], hasSupply: true, supplyProblem: '' },
  );
  // In use, cooling, and what is to spare.
  t.true(demand >= 3);
});

function byIp(a: { readonly ip: string }, b: { readonly ip: string }): number {
  return a.ip < b.ip ? -1 : 1;
}

test(
  'Explain: answers what tke-eni would read itself, and declines for another node',
  withOps,
  COMPACT,
  async (t, trial, ops) => {
    const pod = await trial.addPod();
    await trial.addPod();
    const { stateDir, socketPath } = trial.agent;
    const place = {
      netns: identityOf(trial.node.netns.path),
      journal: identityOf(join(stateDir, 'journal.db')),
      hostRoot: identityOf('/'),
    };
    const subject = `${pod.namespace}/${pod.name}`;
    const reply = await ops.call('explain', { subject, place });
    t.is(reply.declined, '');
    t.like(await ops.call('explain', { subject: 'nobody', place }), { explanation: '' });
    t.regex((await ops.call('explain', { subject, place: { ...place, netns: '0:1' } })).declined, /another namespace/);
    await buildExecutables(['tke-eni']);
    const node = { netns: trial.node.netns, stateDir, socketPath };
    for (const words of [[subject], [subject, '--to', trial.vpc.outside.ip], ['eni-1'], ['10.9.9.9'], ['nobody']]) {
      for (const output of ['table', 'json', 'yaml']) {
        const beside = await runCli(node, 'explain', ...words, '-o', output);
        const alone = await runCli({ ...node, socketPath: `${socketPath}.none` }, 'explain', ...words, '-o', output);
        t.deepEqual({ ...beside }, { ...alone }, `${words.join(' ')} -o ${output}`);
      }
    }
    const { stdout } = await runCli(node, 'explain', subject, '-o', 'json');
    t.deepEqual(JSON.parse(stdout), JSON.parse(reply.explanation));
  },
);

function identityOf(path: string): string {
  const { dev, ino } = statSync(path);
  return `${dev}:${ino}`;
}

test('Repair: a dry run tells and changes nothing, a repair does it', withOps, COMPACT, async (t, trial, ops) => {
  await trial.addPod();
  t.deepEqual((await ops.call('repair', { dryRun: true })).operations, [], 'all is as it should be');
  const wanted = ['sysctl -w net.ipv6.conf.eth1.accept_ra=0'];
  const dryRuns = await spoilUntil(trial, async () => {
    const told = [await ops.call('repair', { dryRun: true }), await ops.call('repair', { dryRun: true })];
    // The agent reads settings every 5 s. Where it did so in between, the setting is as it should be.
    return (await acceptRa(trial)) === '1' ? told : undefined;
  });
  for (const told of dryRuns) {
    t.deepEqual({ ...told, durationUs: 0, agentVersion: '' }, { ...NOTHING_ELSE, operations: wanted, dryRun: true });
  }
  const mended = await spoilUntil(trial, async () => {
    const answer = await ops.call('repair', {});
    t.is(await acceptRa(trial), '0');
    return answer.operations.length > 0 ? answer : undefined;
  });
  t.deepEqual({ ...mended, durationUs: 0, agentVersion: '' }, { ...NOTHING_ELSE, operations: wanted });
  t.deepEqual((await ops.call('repair', {})).operations, []);
  const { passes, repaired, lastPassCause, status, journalOrigin, leasesActive, ruleMode, calls } = await ops.call(
    'summary',
    {},
  );
  t.true(passes >= 3 && repaired >= 1);
  t.deepEqual(
    { lastPassCause, code: status?.code, journalOrigin, leasesActive, ruleMode },
    { lastPassCause: 'ops', code: 0, journalOrigin: 'fresh', leasesActive: 1, ruleMode: 'compact' },
  );
  const add = calls.find(({ verb }) => verb === 'add');
  t.is(add?.total, 1);
  t.is(
    add?.buckets.reduce((sum, { count }) => sum + count, 0),
    1,
  );
});

/** Sets accept_ra to a wrong value and looks; again, up to five times, while the agent's own reading came first. */
async function spoilUntil<T>(trial: Trial, look: () => Promise<T | undefined>): Promise<T> {
  for (let attempt = 0; attempt < 5; attempt++) {
    await trial.node.netns.run(['sh', '-c', `echo 1 > ${ACCEPT_RA}`]);
    const seen = await look();
    if (seen !== undefined) return seen;
  }
  throw new Error('The agent put accept_ra right by its own reading five times in a row');
}

const NOTHING_ELSE = {
  stages: [],
  operations: [],
  failed: [],
  held: [],
  conflicts: [],
  dryRun: false,
  durationUs: 0,
  agentVersion: '',
};

test(
  'Repair: when it answers, what was taken away before the call is there',
  withOps,
  COMPACT,
  async (t, trial, ops) => {
    const pod = await trial.addPod();
    const rule = ['pref', '512', 'lookup', '3999'];
    const route = [`${pod.ip}/32`, 'table', '3999'];
    for (let round = 0; round < 5; round++) {
      // The call and the kernel's notifications wait for it alike: whichever the agent takes first, the answer must be true.
      trial.agent.kill('SIGSTOP');
      await trial.node.netns.ip('rule', 'delete', ...rule);
      await trial.node.netns.ip('route', 'delete', ...route);
      const answer = ops.call('repair', {});
      trial.agent.kill('SIGCONT');
      t.deepEqual((await answer).failed, []);
      t.is((await trial.node.netns.ipJson('rule', 'show', ...rule)).length, 1);
      t.is((await trial.node.netns.ipJson('route', 'show', ...route)).length, 1);
    }
  },
);

test(
  'Repair: tells the way to the other rule mode in stages, and goes none of it',
  withOps,
  COMPACT,
  async (t, trial, ops) => {
    const pod = await trial.addPod();
    const { stages, operations, error } = await ops.call('repair', { dryRun: true, ruleMode: 'per-pod' });
    t.is(error, undefined);
    t.deepEqual(
      stages.flatMap((stage) => stage.operations),
      operations,
    );
    const ofRules = stages.findIndex((stage) =>
      stage.operations.some((line) => line.includes(`rule add pref 1536 from ${pod.ip}/32`)),
    );
    const gone = stages.findIndex((stage) => stage.operations.some((line) => line.includes(`route del ${pod.ip}/32`)));
    t.true(ofRules >= 0 && ofRules < gone, 'the old way goes after the new one is there');
    t.deepEqual((await ops.call('repair', { dryRun: true, ruleMode: 'compact' })).stages, []);
    t.deepEqual((await ops.call('repair', { dryRun: true })).operations, [], 'nothing was done');
    for (const request of [{ ruleMode: 'per-pod' }, { dryRun: true, ruleMode: 'none' }]) {
      t.is((await ops.call('repair', request)).error?.code, 4);
    }
    t.deepEqual(await podRoutes(trial), [pod.ip]);
  },
);

test('Repair: tells what a fight keeps back, and leaves it', withOps, COMPACT, async (t, trial, ops) => {
  const watch = await ops.watch({ kinds: [EVENT_KIND.EVENT_KIND_FIGHT] });
  const adversary = startOpponent(trial, deletionOfEniRule(trial, await tableOfEni(trial, 'eni-1')), 100);
  await waitUntil(async () => (await ops.call('summary', {})).held.length > 0, {
    what: 'the fight to be noticed',
    timeoutMs: 60_000,
  });
  for (const dryRun of [true, false]) {
    // Between two waits it is repaired.
    const { operations, held } = await waitUntil(
      async () => {
        const reply = await ops.call('repair', { dryRun });
        return reply.held.length > 0 && reply;
      },
      { what: 'a wait', timeoutMs: 60_000 },
    );
    t.deepEqual(operations, []);
    t.regex(held.join('\n'), /^ip -4 rule add pref 1537 from /);
  }
  // Asked while the fight goes on: after it the next wait ends with a repair.
  const { fights, held } = await waitUntil(
    async () => {
      const summary = await ops.call('summary', {});
      return summary.held.length > 0 && summary;
    },
    { what: 'a wait in the summary', timeoutMs: 60_000 },
  );
  await adversary.stop('SIGKILL');
  t.is(fights, 1);
  t.like(watch.events, { length: 1, 0: { outcome: EVENT_OUTCOME.EVENT_OUTCOME_FAILED } });
  t.regex(watch.events[0]?.text ?? '', /^another program keeps undoing: ip -4 rule add pref 1537 /);
  t.is(held.length, 1);
});

async function awaitEvent(watch: OpsWatch, kind: number, from = 0): Promise<AgentEvent> {
  const find = () => watch.events.slice(from).find((event) => event.kind === kind);
  await waitUntil(() => find() !== undefined, {
    what: `an event of kind ${kind}`,
    explain: () => JSON.stringify(watch.events),
  });
  return find() as AgentEvent;
}

test(
  'Watch: tells ADD, repair, supply and DEL in order, and ends with the agent',
  withOps,
  COMPACT,
  async (t, trial, ops) => {
    const watch = await ops.watch({});
    const onlyDel = await ops.watch({ kinds: [EVENT_KIND.EVENT_KIND_DEL] });
    const pod = await trial.addPod();
    const subject = `${pod.namespace}/${pod.name}`;
    const add = await awaitEvent(watch, EVENT_KIND.EVENT_KIND_ADD);
    t.like(add, {
      subject,
      containerId: pod.containerId,
      outcome: EVENT_OUTCOME.EVENT_OUTCOME_OK,
      code: 0,
      dropped: 0,
    });
    t.true(add.text.startsWith(pod.ip) && add.durationUs > 0);
    t.true(add.operations.some((line) => line.startsWith('ip link add ')));

    await trial.node.netns.ip('route', 'delete', `${pod.ip}/32`, 'table', '3999');
    const repair = await awaitEvent(watch, EVENT_KIND.EVENT_KIND_REPAIR);
    t.true(repair.operations[0]?.startsWith(`ip route replace ${pod.ip}/32 dev `), repair.operations.join('\n'));

    await trial.vpc.assignIps('eni-1', 1);
    trial.writeSupply();
    t.regex((await awaitEvent(watch, EVENT_KIND.EVENT_KIND_SUPPLY)).text, /in force: .* 1 addresses more/);

    await trial.delete(pod);
    const del = await awaitEvent(watch, EVENT_KIND.EVENT_KIND_DEL);
    t.like(del, { subject, containerId: pod.containerId, outcome: EVENT_OUTCOME.EVENT_OUTCOME_OK });
    t.true(del.operations.some((line) => line.startsWith('ip link del dev ')));

    const { ADD, REPAIR, SUPPLY, DEL } = orderOf(watch.events);
    t.true(ADD < REPAIR && REPAIR < SUPPLY && SUPPLY < DEL);
    t.deepEqual(new Set(onlyDel.events.map(({ kind }) => kind)), new Set([EVENT_KIND.EVENT_KIND_DEL]));

    // One that does not read must not hold up the agent either.
    const held = await ops.watch({});
    held.pause();
    await trial.agent.stop();
    t.is(await watch.ended, UNAVAILABLE);
  },
);

test('Watch: tells of conflicts and of readiness as they come and go', withOps, COMPACT, async (t, trial, ops) => {
  const kinds = [EVENT_KIND.EVENT_KIND_CONFLICT, EVENT_KIND.EVENT_KIND_STATUS];
  const watch = await ops.watch({ kinds });
  // In the table of an ENI: in that of Pods' routes it would be in the way of one Pod at most.
  const theirs = ['192.0.2.1', 'dev', 'eth0', 'table', String(await tableOfEni(trial, 'eni-1')), 'proto', 'static'];
  await trial.node.netns.ip('route', 'add', ...theirs);
  await awaitEvent(watch, EVENT_KIND.EVENT_KIND_STATUS);
  const before = watch.events.length;
  const { conflicts, status } = await ops.call('summary', {});
  await trial.node.netns.ip('route', 'delete', ...theirs);
  await awaitEvent(watch, EVENT_KIND.EVENT_KIND_STATUS, before);
  t.deepEqual(
    watch.events.map(({ kind, outcome, code }) => ({ kind, outcome, code })),
    [
      { kind: EVENT_KIND.EVENT_KIND_CONFLICT, outcome: EVENT_OUTCOME.EVENT_OUTCOME_FAILED, code: 0 },
      { kind: EVENT_KIND.EVENT_KIND_STATUS, outcome: EVENT_OUTCOME.EVENT_OUTCOME_FAILED, code: 51 },
      { kind: EVENT_KIND.EVENT_KIND_CONFLICT, outcome: EVENT_OUTCOME.EVENT_OUTCOME_OK, code: 0 },
      { kind: EVENT_KIND.EVENT_KIND_STATUS, outcome: EVENT_OUTCOME.EVENT_OUTCOME_OK, code: 0 },
    ],
  );
  t.is(status?.code, 51);
  t.deepEqual(conflicts, [watch.events[0]?.text]);
  t.is(watch.events[2]?.text, `over: ${conflicts[0]}`);
});

const UNAVAILABLE = 14;

function orderOf(events: readonly AgentEvent[]): Readonly<Record<'ADD' | 'DEL' | 'REPAIR' | 'SUPPLY', number>> {
  const at = (kind: number) => events.findIndex((event) => event.kind === kind);
  return {
    ADD: at(EVENT_KIND.EVENT_KIND_ADD),
    DEL: at(EVENT_KIND.EVENT_KIND_DEL),
    REPAIR: at(EVENT_KIND.EVENT_KIND_REPAIR),
    SUPPLY: at(EVENT_KIND.EVENT_KIND_SUPPLY),
  };
}

test('Recorder: tells of ADD, repair, DEL and a failed ADD of a Pod', withOps, COMPACT, async (t, trial, ops) => {
  const pods: AttachedPod[] = [];
  for (let count = 0; count < 6; count++) pods.push(await trial.addPod());
  const [first] = pods as [AttachedPod];
  await trial.node.netns.ip('route', 'delete', `${first.ip}/32`, 'table', '3999');
  await waitUntil(async () => (await podRoutes(trial)).includes(first.ip), { what: 'the repair' });
  // No address is left: all are in use.
  const late = await trial.newPod();
  t.not((await trial.tryAdd(late)).exitCode, 0);
  await trial.delete(first);

  const recorded = async (pod: string) => (await ops.call('recorder', { pod })).pods;
  const [one, ...others] = await recorded(`${first.namespace}/${first.name}`);
  t.deepEqual(others, []);
  t.deepEqual(
    one?.operations.map(({ kind }) => kind),
    [EVENT_KIND.EVENT_KIND_ADD, EVENT_KIND.EVENT_KIND_REPAIR, EVENT_KIND.EVENT_KIND_DEL],
  );
  const [add, repair, del] = one?.operations ?? [];
  t.like(add, { ips: [first.ip], containerId: first.containerId, ifName: 'eth0', code: 0 });
  t.deepEqual(
    add?.steps.map(({ name }) => name),
    ['queue', 'allocate', 'record', 'netlink', 'verify', 'commit'],
  );
  t.true(add?.operations.some((line) => line.includes(` ${first.ip}/32 `)));
  t.true(repair?.operations[0]?.startsWith(`ip route replace ${first.ip}/32 `));
  t.regex(repair?.cause ?? '', /^route del by (ip|a process that has ended, or one of a container) \(pid \d+\)/);
  t.deepEqual(
    del?.steps.map(({ name }) => name),
    ['queue', 'record', 'netlink', 'erase'],
  );

  const [failed] = await recorded(`${late.namespace}/${late.name}`);
  t.like(failed?.operations[0], {
    kind: EVENT_KIND.EVENT_KIND_ADD,
    outcome: EVENT_OUTCOME.EVENT_OUTCOME_FAILED,
    code: 101,
  });
  t.regex(failed?.operations[0]?.text ?? '', /no address left/);
  // By address and by container.
  t.is((await recorded(pods[1]?.ip ?? '')).length, 1);
  t.is((await recorded(late.containerId.slice(0, 12))).length, 1);
  const [node, ...all] = await recorded('');
  t.is(all.length, 7);
  t.is(node?.pod, 'node', 'what was set up for the node and its ENI');
  t.true(node?.operations.some(({ operations }) => operations.some((line) => line.startsWith('ip -4 rule add '))));
});

test(
  'node.json: says how the node was planned, for those who look when the agent is dead',
  withOps,
  COMPACT,
  async (t, trial) => {
    const record = readNodeRecord(join(trial.agent.stateDir, 'node.json'));
    const journal = readJournalFacts(join(trial.agent.stateDir, 'journal.db'));
    t.deepEqual(
      record.enis.map(({ eniId, table, slot }) => ({ eniId, table, slot })),
      journal.enis.map(({ eniId, table, slot }) => ({ eniId, table, slot })),
    );
    const links = await trial.node.netns.ipJson('link', 'show');
    t.deepEqual(
      record.enis.map(({ ifindex, ifname, mac }) => ({ ifindex, ifname, mac })),
      record.enis
        .map(({ ifname }) => links.find((link) => link['ifname'] === ifname))
        .map((link) => ({
          ifindex: Number(link?.['ifindex']),
          ifname: String(link?.['ifname']),
          mac: String(link?.['address']),
        })),
    );
    t.is(record.node.ruleMode, 'compact');
  },
);
