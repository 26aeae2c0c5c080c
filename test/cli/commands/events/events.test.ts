import { writeFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { openJournal } from '../../../../agent/journal/journal.ts';
import { selectClusterRows } from '../../../../cli/commands/events/build-event-rows.ts';
import { eventObject, type InvolvedObject } from '../../../../kube/events/event-object.ts';
import { openKubeClient } from '../../../../kube/open-client.ts';
import { EVENTS as KUBE_EVENTS } from '../../../../kube/resource-types.ts';
import { systemClock } from '../../../../runtime/clock.ts';
import { silentLogger } from '../../../../runtime/log.ts';
import { renderKubeconfig } from '../../../../sim/kube-api/kubeconfig.ts';
import { startKubeApi } from '../../../../sim/kube-api/start-kube-api.ts';
import { matchesGolden } from '../../../support/golden.ts';
import { createTempDir, type TempDir } from '../../../support/temp-dir.ts';
import { waitUntil } from '../../../support/wait-until.ts';
import { runCaptured } from '../../agent/captured.ts';
import { startFakeAgent } from '../../agent/fake-agent.ts';
import { JOURNAL_SAMPLE, LEASE_SAMPLE } from '../../agent/samples.ts';

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
    pod: 'node',
    operations: [
      {
        atUnixMs: AT + 5_000,
        kind: 5,
        outcome: 1,
        durationUs: 1_500,
        cause: 'rule del by ip (pid 4711)',
        repeats: 2,
        operations: ['ip rule add pref 512 lookup 3999 protocol 84', 'ip rule add pref 1536 lookup 4003 protocol 84'],
      },
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
  t.deepEqual(kinds, ['ADD', 'ADD', 'REPAIR', 'DEL', 'repair']);
});

test('events: exits 2 without an agent', async (t) => {
  const { code, stderr } = await runCaptured(['events', '--socket', '/nonexistent/a.sock']);
  t.is(code, 2);
  t.regex(stderr, /agent does not answer/);
});

test('selectClusterRows: keeps what concerns this node’s network, and stands malformed events', (t) => {
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
  const rows = selectClusterRows(
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

/** Writes events by the program's own way of writing them, and gives a kubeconfig that may list them, or may not. */
async function openCluster(t: ExecutionContext, dir: TempDir, authorization: 'all' | 'rbac') {
  const api = await startKubeApi({ authorization });
  t.teardown(api.close);
  const token = api.addToken({ username: 'nobody', groups: [] });
  const kubeconfig = dir.join('kubeconfig');
  writeFileSync(kubeconfig, renderKubeconfig({ url: api.url, token }));
  if (authorization === 'rbac') return kubeconfig;
  const common = { env: {}, clock: systemClock, log: silentLogger, qps: 50, burst: 50, userAgent: 'test' };
  const client = openKubeClient({ ...common, kubeconfig });
  t.teardown(client.close);
  const write = (name: string, involved: InvolvedObject, component: string) => {
    const times = { count: 2, firstTime: '2026-01-02T03:04:00Z', lastTime: '2026-01-02T03:04:06Z' };
    const event = eventObject(
      name,
      { involved, type: 'Warning', reason: `By${name}`, message: 'm' },
      { component },
      times,
    );
    return client.create(KUBE_EVENTS, event);
  };
  const node = { apiVersion: 'v1', kind: 'Node' } as const;
  const pod = { apiVersion: 'v1', kind: 'Pod', namespace: 'default' } as const;
  await write('a', { ...node, name: 'node-1' }, 'tke-eni-agent');
  await write('b', { ...node, name: 'node-2' }, 'tke-eni-agent');
  await write('c', { ...pod, name: 'web-0' }, 'tke-eni-ipamd');
  await write('d', { ...pod, name: 'web-0' }, 'default-scheduler');
  return kubeconfig;
}

/** A state folder that tells which node and Pods these are. */
function writeState(dir: TempDir): string {
  const journal = openJournal(dir.join('journal.db'), { clock: systemClock });
  if (JOURNAL_SAMPLE.supply !== undefined) journal.putSupply(JOURNAL_SAMPLE.supply);
  journal.putLease(LEASE_SAMPLE);
  journal.close();
  return dir.path;
}

test('events: with a kubeconfig tells what Kubernetes was told of this node, too', async (t) => {
  const dir = createTempDir('events');
  t.teardown(dir.close);
  const agent = await startFakeAgent(dir.join('a.sock'), { recorder: () => ({ pods: PODS }) });
  t.teardown(agent.close);
  const kubeconfig = await openCluster(t, dir, 'all');
  const places = ['--socket', dir.join('a.sock'), '--state-dir', writeState(dir), '--kubeconfig', kubeconfig];
  const { stdout, stderr, code } = await runCaptured(['events', '-o', 'json', ...places]);
  t.is(code, 0, stderr);
  t.is(stderr, '');
  t.deepEqual(
    JSON.parse(stdout).map(({ kind, source }: Record<string, unknown>) => `${source} ${kind}`),
    ['agent ADD', 'tke-eni-agent Bya', 'tke-eni-ipamd Byc', 'agent ADD', 'agent REPAIR', 'agent DEL'],
  );
});

test('events: where the cluster may not be asked, the recorder is told all the same', async (t) => {
  const dir = createTempDir('events');
  t.teardown(dir.close);
  const agent = await startFakeAgent(dir.join('a.sock'), { recorder: () => ({ pods: PODS }) });
  t.teardown(agent.close);
  const kubeconfig = await openCluster(t, dir, 'rbac');
  const places = ['--socket', dir.join('a.sock'), '--state-dir', dir.path, '--kubeconfig', kubeconfig];
  const { stdout, stderr, code } = await runCaptured(['events', '-o', 'json', ...places]);
  t.is(code, 0);
  t.is(JSON.parse(stdout).length, 4);
  t.regex(stderr, /forbidden|FORBIDDEN|403/i);
});
