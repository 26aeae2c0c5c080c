import test from 'ava';
import { findClusterRows } from '../../../cli/events/find-cluster-rows.ts';
import { matchesGolden } from '../../support/golden.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { runCaptured } from '../agent/captured.ts';
import { startFakeAgent } from '../agent/fake-agent.ts';

const AT = Date.UTC(2026, 0, 2, 3, 4, 5);
const PODS = [
  {
    pod: 'default/web-0',
    operations: [
      {
        atUnixMs: AT + 2_000,
        kind: 1,
        outcome: 1,
        durationUs: 3_400,
        containerId: 'a1b2c3d4e5f6',
        ips: ['10.0.2.10'],
        eniId: 'eni-aaaa1111',
        link: 'eni0123456789a',
        steps: [{ name: 'lease', durationUs: 900 }],
        operations: ['ip route add 10.0.2.10/32 dev eni0123456789a table 3999'],
      },
      { atUnixMs: AT + 9_000, kind: 2, outcome: 1, durationUs: 25_000, containerId: 'a1b2c3d4e5f6' },
    ],
  },
  {
    pod: 'shop/cart-7',
    operations: [
      { atUnixMs: AT, kind: 1, outcome: 2, code: 100, text: 'no address is free', details: 'cooling 3', repeats: 4 },
    ],
  },
];

test('events: tells the recorder’s operations in their order, at 80 and 160 columns', async (t) => {
  const dir = createTempDir('events');
  t.teardown(dir.close);
  const asked: string[] = [];
  const agent = await startFakeAgent(dir.join('a.sock'), {
    recorder: ({ pod }) => {
      asked.push(pod);
      return { pods: PODS };
    },
  });
  t.teardown(agent.close);
  for (const columns of [80, 160]) {
    const { stdout, code } = await runCaptured(['events', '--socket', dir.join('a.sock')], { columns });
    t.is(code, 0);
    matchesGolden(t, import.meta.url, `events-${columns}.txt`, stdout);
  }
  const json = await runCaptured([
    'events',
    '--pod',
    'web',
    '--last',
    '1',
    '-o',
    'json',
    '--socket',
    dir.join('a.sock'),
  ]);
  t.deepEqual(
    JSON.parse(json.stdout).map(({ kind, atMs }: { kind: string; atMs: number }) => [kind, atMs]),
    [['DEL', AT + 9_000]],
  );
  t.is(asked.at(-1), 'web');
});

test('events --follow: goes on with what comes', async (t) => {
  const dir = createTempDir('events');
  t.teardown(dir.close);
  const agent = await startFakeAgent(dir.join('a.sock'), { recorder: () => ({ pods: PODS }) });
  t.teardown(agent.close);
  const stop = new AbortController();
  let seen = '';
  const running = runCaptured(['events', '--follow', '-o', 'json', '--socket', dir.join('a.sock')], {
    signal: stop.signal,
    onStdout: (text) => {
      seen += text;
    },
  });
  await waitUntil(() => agent.watchers() > 0, { what: 'the watch' });
  agent.tell({ atUnixMs: AT + 60_000, kind: 5, text: 'mended', outcome: 1 });
  await waitUntil(() => seen.includes('mended'), { what: 'the event' });
  stop.abort();
  const { code, stdout } = await running;
  t.is(code, 0);
  const kinds = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).kind);
  t.deepEqual(kinds, ['ADD', 'ADD', 'DEL', 'repair']);
});

test('events: exits 2 without an agent', async (t) => {
  const { code, stderr } = await runCaptured(['events', '--socket', '/nonexistent/a.sock']);
  t.is(code, 2);
  t.regex(stderr, /agent does not answer/);
});

test('findClusterRows: keeps what concerns this node’s network, and stands malformed events', (t) => {
  const event = (involved: object, source: object, reason: string, more: object = {}) => ({
    involvedObject: involved,
    source,
    reason,
    type: 'Warning',
    message: 'm',
    lastTimestamp: '2026-01-02T03:04:05Z',
    ...more,
  });
  const pod = (name: string) => ({ kind: 'Pod', namespace: 'default', name });
  const rows = findClusterRows(
    [
      event({ kind: 'Node', name: 'n1' }, { component: 'tke-eni-agent' }, 'RepairFight', { count: 3 }),
      event({ kind: 'NodeENIConfig', name: 'n1' }, { component: 'tke-eni-ipamd' }, 'SubnetExhausted'),
      event({ kind: 'Node', name: 'n2' }, { component: 'tke-eni-agent' }, 'RepairFight'),
      event({ kind: 'Node', name: 'n1' }, { component: 'node-controller' }, 'NodeReady'),
      event(pod('web-0'), { component: 'tke-eni-ipamd' }, 'EipBound'),
      event(pod('elsewhere'), { component: 'tke-eni-ipamd' }, 'EipBound'),
      event(pod('new'), { component: 'kubelet', host: 'n1' }, 'FailedCreatePodSandBox'),
      event(pod('new'), { component: 'kubelet', host: 'n2' }, 'FailedCreatePodSandBox'),
      event(pod('web-0'), { component: 'kubelet', host: 'n1' }, 'BackOff'),
      null,
      { involvedObject: 5, source: 'x', reason: {} },
    ],
    { nodeName: 'n1', pods: new Set(['default/web-0']) },
  );
  t.deepEqual(
    rows.map(({ subject, kind }) => `${subject} ${kind}`),
    ['node/n1 RepairFight', 'node/n1 SubnetExhausted', 'default/web-0 EipBound', 'default/new FailedCreatePodSandBox'],
  );
  t.is(rows[0]?.count, 3);
  t.is(rows[0]?.atMs, AT);
});
