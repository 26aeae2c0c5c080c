import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { ADDRESS_STATE } from '../../../../agent/api/ops-messages.ts';
import { openJournal } from '../../../../agent/journal/journal.ts';
import { openOpsClient } from '../../../../cli/agent/ops-client.ts';
import { buildPodRows, matchesPod, renderPods } from '../../../../cli/commands/pool/build-pod-rows.ts';
import { systemClock } from '../../../../runtime/clock.ts';
import { matchesGolden } from '../../../support/golden.ts';
import { createTempDir, type TempDir } from '../../../support/temp-dir.ts';
import { cliErrorOf, runCaptured } from '../../agent/captured.ts';
import { type FakeAgent, startFakeAgent } from '../../agent/fake-agent.ts';
import { JOURNAL_SAMPLE, LEASE_SAMPLE, POOL_SAMPLE, SUMMARY_SAMPLE } from '../../agent/samples.ts';

const WIDTHS = [80, 160] as const;
const COMMANDS = [['pool'], ['enis'], ['status', '--all-addresses']] as const;

let dir: TempDir;
let agent: FakeAgent;

const at = (name: string) => ({ socket: dir.join(name), agentTimeoutMs: 200 });

test.before(async () => {
  dir = createTempDir('views');
  agent = await startFakeAgent(dir.join('agent.sock'), { pool: POOL_SAMPLE, summary: SUMMARY_SAMPLE });
});
test.after.always(() => {
  agent.close();
  dir.close();
});

for (const argv of COMMANDS) {
  for (const columns of WIDTHS) {
    test(`${argv[0]}: fits ${columns} columns`, async (t) => {
      const { stdout, stderr } = await runCaptured([...argv, '--socket', dir.join('agent.sock')], { columns });
      t.is(stderr, '');
      t.true(stdout.split('\n').every((line) => line.length <= columns));
      matchesGolden(t, import.meta.url, `${argv[0]}-${columns}.txt`, stdout);
    });
  }
  test(`${argv[0]}: colours mean something and change no column`, async (t) => {
    const line = [...argv, '--socket', dir.join('agent.sock')];
    const plain = await runCaptured(line, { columns: 160 });
    const colored = await runCaptured(line, { columns: 160, isColored: true });
    t.not(colored.stdout, plain.stdout);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character begins each sequence.
    t.is(colored.stdout.replace(/\u001b\[[0-9;]*m/g, ''), plain.stdout);
  });
}

test('pool -o json: one document with every address', async (t) => {
  const { stdout, code } = await runCaptured(['pool', '-o', 'json', '--socket', dir.join('agent.sock')]);
  t.is(code, 0);
  const document = JSON.parse(stdout);
  t.is(document.source, 'agent');
  t.is(document.addresses.length, POOL_SAMPLE.addresses?.length);
  t.deepEqual(document.waiting, ['shop/cart-7']);
});

test('status: exits 1 when something is in the way, 0 when all is well', async (t) => {
  const line = ['status', '--socket', dir.join('agent.sock')];
  t.is((await runCaptured(line)).code, 1);
  const well = await startFakeAgent(dir.join('well.sock'), {
    pool: { ...POOL_SAMPLE, enis: POOL_SAMPLE.enis?.slice(0, 1) ?? [] },
    summary: { ...SUMMARY_SAMPLE, status: { code: 0 }, conflicts: [], held: [] },
  });
  t.teardown(well.close);
  t.is((await runCaptured(['status', '--socket', dir.join('well.sock')])).code, 0);
});

test('status: does not say ready when no address is free and none comes', async (t) => {
  const [eni] = POOL_SAMPLE.enis ?? [];
  const draining = await startFakeAgent(dir.join('draining.sock'), {
    pool: { ...POOL_SAMPLE, enis: [{ ...eni, draining: true, ready: false }] },
    summary: { ...SUMMARY_SAMPLE, status: { code: 0 }, conflicts: [], held: [], bridge: undefined },
  });
  t.teardown(draining.close);
  const { code, stdout } = await runCaptured(['status', '--socket', dir.join('draining.sock')], { columns: 160 });
  t.is(code, 1);
  t.regex(stdout, /^ready +no: no address is free, and no ENI serves new Pods/m);
});

/** As an agent with these failures says them. */
const REFUSED = {
  ...{ call: 'update nodeeniconfigs', kind: 'refused', code: 'FORBIDDEN', httpStatus: 403, isNeededByPods: true },
  summary: 'the API server refuses to update nodeeniconfigs (403 FORBIDDEN, since 90 s): no; grant it',
};

test('status: names what the API server refuses, and calls nothing asked for that it was not told', async (t) => {
  const [eni] = POOL_SAMPLE.enis ?? [];
  const [address] = POOL_SAMPLE.addresses ?? [];
  const answers = {
    pool: {
      ...POOL_SAMPLE,
      ...{ enis: [{ ...eni, ready: true }], demand: 13, asked: { known: true, addresses: 8 }, supplyProblem: '' },
      addresses: [{ ...address, eniId: eni?.eniId ?? '', state: ADDRESS_STATE.ADDRESS_STATE_IN_USE }],
    },
    summary: {
      ...{ ...SUMMARY_SAMPLE, status: { code: 0 }, conflicts: [], held: [], bridge: undefined },
      apiFailures: [REFUSED],
    },
  };
  const refused = await startFakeAgent(dir.join('refused.sock'), answers);
  t.teardown(refused.close);
  const line = ['status', '--socket', dir.join('refused.sock')];
  const { code, stdout } = await runCaptured(line, { columns: 200 });
  t.is(code, 1);
  t.regex(stdout, /^ready +not now: no address is free; 13 are wanted, 8 asked for so far, 1 are there$/m);
  t.regex(stdout, /; wanted: 13, asked for: 8; /);
  t.regex(
    stdout,
    /^API +the API server refuses to update nodeeniconfigs \(403 FORBIDDEN, since 90 s\): no; grant it$/m,
  );
  t.notRegex(stdout, /13 are asked for/);
  refused.answers.summary = { ...answers.summary, apiFailures: [] };
  t.is((await runCaptured(line)).code, 0);
});

test('pool: exits 2 and names both when there is neither an agent nor a journal', async (t) => {
  const argv = ['pool', '--socket', dir.join('none.sock'), '--state-dir', dir.join('none')];
  const { code, stderr, stdout } = await runCaptured(argv);
  t.is(code, 2);
  t.is(stdout, '');
  t.regex(stderr, /none\.sock/);
  t.regex(stderr, /no .*journal\.db/);
  t.regex(stderr, /next:/);
});

test('openOpsClient: calls an agent without the service too old', async (t) => {
  const old = await startFakeAgent(dir.join('old.sock'), {});
  t.teardown(old.close);
  using client = await openOpsClient(at('old.sock'));
  const error = await cliErrorOf(client.pool());
  t.is(error.code, 'NO_AGENT');
  t.regex(error.message, /too old/);
});

test('openOpsClient: tells a socket that nobody listens on from one that is not there', async (t) => {
  const { createServer } = await import('node:net');
  const path = dir.join('dead.sock');
  const server = createServer().listen(path);
  await new Promise((resolve) => server.once('listening', resolve));
  // A socket file outlives its server when the server is killed; here it is renamed away from its cleanup.
  const { renameSync } = await import('node:fs');
  renameSync(path, dir.join('left.sock'));
  await new Promise((resolve) => server.close(resolve));
  using client = await openOpsClient(at('left.sock'));
  const dead = await cliErrorOf(client.summary());
  t.is(dead.code, 'NO_AGENT');
  const missing = await cliErrorOf(openOpsClient(at('missing.sock')));
  t.regex(missing.message, /there is no/);
});

test('pool, status: read the journal when an agent listens and does not answer', async (t) => {
  const { createServer } = await import('node:net');
  const path = dir.join('silent.sock');
  const server = createServer().listen(path);
  await new Promise((resolve) => server.once('listening', resolve));
  t.teardown(() => server.close());
  const places = ['--agent-timeout', '0.05', '--socket', path, '--state-dir', openStateDir('state-silent')];
  const beganMs = performance.now();
  const pool = await runCaptured(['pool', ...places], { columns: 200 });
  t.true(performance.now() - beganMs < 2_500, 'the flag says how long the agent has');
  t.is(pool.code, 0);
  t.regex(
    pool.stdout,
    /^from the journal, no answer of the agent: the agent on .* did not answer within 0.05 s; --agent-timeout=SECONDS waits longer$/m,
  );
  const { code, stdout } = await runCaptured(['status', ...places]);
  t.is(code, 1);
  t.regex(stdout, /^agent +NO ANSWER$/m);
  const enis = await runCaptured(['status', '-o', 'json', ...places]);
  t.like(JSON.parse(enis.stdout), { pool: { source: 'journal', isAgentSilent: true } });
});

test('pool, status: wait for an agent that is busy, and do not call it silent', async (t) => {
  const busy = await startFakeAgent(dir.join('busy.sock'), {
    pool: { ...POOL_SAMPLE, enis: POOL_SAMPLE.enis?.slice(0, 1) ?? [] },
    summary: { ...SUMMARY_SAMPLE, status: { code: 0 }, conflicts: [], held: [] },
    delayMs: 400,
  });
  t.teardown(busy.close);
  const places = ['--socket', dir.join('busy.sock'), '--state-dir', openStateDir('state-busy')];
  const status = await runCaptured(['status', ...places], { isHasty: true });
  t.is(status.code, 0, status.stdout);
  t.notRegex(status.stdout, /NO ANSWER/);
  const pool = await runCaptured(['pool', '-o', 'json', ...places], { isHasty: true });
  t.is(JSON.parse(pool.stdout).source, 'agent');
});

test('openOpsClient: --agent-timeout sets the wait of all calls that read', async (t) => {
  const slow = await startFakeAgent(dir.join('slow.sock'), { summary: SUMMARY_SAMPLE, delayMs: 5_400 });
  t.teardown(slow.close);
  const place = { socket: dir.join('slow.sock'), agentTimeoutMs: 200 };
  using hasty = await openOpsClient(place);
  using patient = await openOpsClient({ ...place, agentTimeoutMs: 20_000 });
  const [late, summary] = await Promise.all([cliErrorOf(hasty.summary()), patient.summary()]);
  t.regex(late.message, /did not answer within 5 s; --agent-timeout=SECONDS waits longer/);
  t.is(summary.nodeName, SUMMARY_SAMPLE.nodeName ?? '');
});

test('openOpsClient: watch gives events as they come and ends with its signal', async (t) => {
  using client = await openOpsClient(at('agent.sock'));
  const stop = new AbortController();
  const opened = Promise.withResolvers<void>();
  const seen: string[] = [];
  const watching = (async () => {
    for await (const event of client.watch([], stop.signal, opened.resolve)) {
      seen.push(event.text);
      if (seen.length === 2) stop.abort();
    }
  })();
  await opened.promise;
  agent.tell({ kind: 1, subject: 'default/web-0', text: 'first' });
  agent.tell({ kind: 2, subject: 'default/web-0', text: 'second' });
  await watching;
  t.deepEqual(seen, ['first', 'second']);
});

/** A state folder as an agent leaves it. */
function openStateDir(name: string): string {
  const path = dir.join(name);
  mkdirSync(path);
  const journal = openJournal(join(path, 'journal.db'), { clock: systemClock });
  for (const eni of JOURNAL_SAMPLE.enis) journal.putEni(eni);
  if (JOURNAL_SAMPLE.supply !== undefined) journal.putSupply(JOURNAL_SAMPLE.supply);
  journal.putLease(LEASE_SAMPLE);
  journal.close();
  return path;
}

for (const columns of WIDTHS) {
  test(`pool, status: tell what the journal alone says, at ${columns} columns`, async (t) => {
    const places = ['--socket', '/nonexistent/agent.sock', '--state-dir', openStateDir(`state-${columns}`)];
    const pool = await runCaptured(['pool', ...places], { columns });
    t.is(pool.code, 0);
    matchesGolden(t, import.meta.url, `pool-journal-${columns}.txt`, pool.stdout);
    const status = await runCaptured(['status', ...places], { columns });
    t.is(status.code, 1);
    matchesGolden(t, import.meta.url, `status-journal-${columns}.txt`, status.stdout);
  });

  test(`renderPods: fits ${columns} columns`, (t) => {
    const unnamed = { ...LEASE_SAMPLE, containerId: 'ffee00112233445566', podNamespace: '', podName: '' };
    const rows = buildPodRows([LEASE_SAMPLE, { ...unnamed, state: 'releasing', ifName: 'net1' }], 7_201_000);
    const text = renderPods(rows, { width: columns, isColored: false });
    t.true(text.split('\n').every((line) => line.length <= columns));
    matchesGolden(t, import.meta.url, `pods-${columns}.txt`, text);
  });
}

test('status: calls an agent without the service too old, and tells what the journal says', async (t) => {
  const old = await startFakeAgent(dir.join('older.sock'), {});
  t.teardown(old.close);
  const places = ['--socket', dir.join('older.sock'), '--state-dir', openStateDir('state-old')];
  const { code, stdout } = await runCaptured(['status', ...places]);
  t.is(code, 1);
  t.regex(stdout, /^agent +TOO OLD$/m);
  t.regex(stdout, /: 2 in use, 3 free$/m);
});

test('matchesPod: by name, address, veth or the beginning of a container id', (t) => {
  const [row] = buildPodRows([LEASE_SAMPLE], 0);
  if (row === undefined) return t.fail();
  for (const word of ['web', 'default/web-0', '10.0.2.10', 'fd00:10:0:2::a', 'eni0123456789a', 'a1b2']) {
    t.true(matchesPod(row, word), word);
  }
  for (const word of ['a1b', '10.0.2.1', 'db', 'eni0123']) t.false(matchesPod(row, word), word);
});
