import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { openJournal } from '../../agent/journal/journal.ts';
import { systemClock } from '../../runtime/clock.ts';
import { createPodNetns } from '../support/pod-netns.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { runCaptured } from './agent/captured.ts';
import { startFakeAgent } from './agent/fake-agent.ts';
import { JOURNAL_SAMPLE, LEASE_SAMPLE, POOL_SAMPLE, SUMMARY_SAMPLE } from './agent/samples.ts';

/** Sets a terminal's title, clears it, hides what follows, and turns a line around. */
const POISON = '\u001b]0;owned\u0007\u001b[2J\u009b8m\r\n\u202e';
/** As a link may be named: 15 bytes, no blanks, no slash, no colon. */
const LINK = 'p\u001b[2J\u0007\u009b8m';

/** Fields that anybody who makes a Pod, or an agent's peer, has a say in. */
const OPEN = new Set([
  'podName',
  'podNamespace',
  'nodeName',
  'agentVersion',
  'problem',
  'supplyProblem',
  'msg',
  'details',
]);
const LISTS = new Set(['conflicts', 'held']);

function poisoned<T>(value: T, name = ''): T {
  if (typeof value === 'string') return (OPEN.has(name) || LISTS.has(name) ? `${value}${POISON}` : value) as T;
  if (Array.isArray(value)) return value.map((inner) => poisoned(inner, name)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, poisoned(inner, key)])) as T;
}

/** A node where every name that others choose would do something to a terminal. */
async function openNode(t: ExecutionContext): Promise<readonly string[]> {
  const dir = createTempDir('poison');
  t.teardown(dir.close);
  mkdirSync(dir.join('state'));
  const journal = openJournal(dir.join('state/journal.db'), { clock: systemClock });
  for (const eni of JOURNAL_SAMPLE.enis) journal.putEni(eni);
  if (JOURNAL_SAMPLE.supply !== undefined) journal.putSupply(JOURNAL_SAMPLE.supply);
  journal.putLease(poisoned({ ...LEASE_SAMPLE, netns: `/run/netns/x${POISON}` }));
  journal.markAdopted();
  journal.close();
  mkdirSync(dir.join('root/etc/cni/net.d'), { recursive: true });
  writeFileSync(dir.join(`root/etc/cni/net.d/10-${LINK}.conflist`), `{"name":"${POISON.slice(0, 2)}`);
  const agent = await startFakeAgent(dir.join('agent.sock'), {
    pool: poisoned(POOL_SAMPLE),
    summary: { ...poisoned(SUMMARY_SAMPLE), lastPassError: POISON, conflicts: [POISON], held: [POISON] },
    recorder: () => ({
      pods: [
        { pod: `default/web-0${POISON}`, operations: [{ kind: 1, outcome: 2, text: POISON, operations: [POISON] }] },
      ],
    }),
    repair: {
      operations: [POISON],
      held: [POISON],
      conflicts: [POISON],
      failed: [{ operation: POISON, error: POISON }],
    },
  });
  t.teardown(agent.close);
  const netns = await createPodNetns(`tke-test-${randomBytes(4).toString('hex')}`);
  t.teardown(() => netns.close());
  await netns.ip('link', 'add', LINK, 'type', 'bridge');
  await netns.ip('link', 'set', LINK, 'alias', `tke-eni/c9${POISON}/eth0`, 'up');
  await netns.ip('link', 'add', 'v0', 'type', 'veth', 'peer', 'name', 'v1');
  await netns.ip('link', 'set', 'v0', 'alias', `tke-eni/c8${POISON}/eth0`);
  await netns.ip('address', 'add', '10.9.0.1/24', 'dev', LINK);
  await netns.ip('route', 'add', '10.8.0.0/24', 'dev', LINK, 'table', '4001');
  await netns.ip('rule', 'add', 'iif', LINK, 'lookup', '4001', 'priority', '100');
  await netns.ip('neigh', 'add', '10.9.0.7', 'lladdr', '02:00:00:00:00:07', 'dev', LINK);
  await netns.nft(
    `table inet other { chain c { type filter hook forward priority 0;\n counter comment "${POISON.replace(/[\r\n]/g, '')}"\n}\n}\n`,
  );
  const places = ['--netns', netns.path, '--socket', dir.join('agent.sock'), '--state-dir', dir.join('state')];
  return [...places, '--host-root', '/'];
}

const LINES = [
  ...['status', 'status --all-addresses', 'pool', 'pods', 'enis', 'events', 'top --once', 'doctor', 'diff', 'check'],
  ...['repair', 'repair --dry-run', 'explain 10.0.2.10', 'explain 10.9.9.9', 'routes --all', 'rules --all'],
  ...['links --all', 'addrs --all', 'neigh --all', 'routes --table 4001', 'graph -o svg'],
  ...[
    'graph -o html',
    'dump -o ip',
    'diff -o ip',
    'repair --dry-run -o ip',
    `explain no${POISON}where`,
    `pods ${POISON}`,
  ],
  ...['links', 'routes', 'status', 'pods', 'diff', 'doctor', 'graph', 'pool', 'events', 'repair --dry-run'].flatMap(
    (name) => [`${name} -o json`, ...(name === 'graph' ? [] : [`${name} -o yaml`])],
  ),
];

test('every command: prints no control characters, whatever names others chose', async (t) => {
  t.timeout(240_000);
  const places = await openNode(t);
  const faults: string[] = [];
  for (const line of LINES) {
    // A document is for programs unless it is printed on a terminal; then progress, which does redraw, is there too.
    const isTerminal = /-o (?:json|yaml)$/.test(line);
    const { stdout, stderr } = await runCaptured([...line.split(' '), ...places], { columns: 160, isTerminal });
    for (const [stream, text] of Object.entries(isTerminal ? { stdout } : { stdout, stderr })) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are looked for.
      const found = /[^\n]{0,60}[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069][^\n]{0,20}/.exec(
        text,
      );
      if (found !== null) faults.push(`${JSON.stringify(line)} ${stream}: ${JSON.stringify(found[0])}`);
    }
  }
  t.deepEqual(faults, []);
});
