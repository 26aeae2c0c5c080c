import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { openSupplyFile, type SupplyFileOptions } from '../../../agent/supply/supply-file.ts';
import type { SupplyEvent, SupplySource } from '../../../agent/supply/supply-source.ts';
import { writeFileAtomically } from '../../../runtime/atomic-file.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';

const EXAMPLE = readFileSync(new URL('../../../conf/node.example.yaml', import.meta.url), 'utf8');
const withEpoch = (epoch: number) => EXAMPLE.replace('supplyEpoch: 1', `supplyEpoch: ${epoch}`);

type Opened = { path: string; source: SupplySource; events: SupplyEvent[]; errors: string[] };

function openIn(
  t: ExecutionContext,
  prepare: (path: string) => void,
  options: Partial<SupplyFileOptions> = {},
): Opened {
  const folder = createTempDir('supply');
  const path = folder.join('conf', 'node.yaml');
  mkdirSync(dirname(path));
  prepare(path);
  const errors: string[] = [];
  const log = {
    ...silentLogger,
    error: (message: string) => errors.push(message),
    warn: (message: string) => errors.push(message),
  };
  const source = openSupplyFile(path, {
    clock: systemClock,
    log,
    debounceMs: 20,
    pollMs: 60_000,
    inForce: () => undefined,
    ...options,
  });
  const events: SupplyEvent[] = [];
  source.subscribe((event) => events.push(event));
  t.teardown(() => {
    source.close();
    folder.close();
  });
  return { path, source, events, errors };
}

function epochSeen(opened: Opened, epoch: number): Promise<unknown> {
  return waitUntil(() => opened.source.latest()?.epoch === epoch, { what: `epoch ${epoch}` });
}

test('openSupplyFile: has read the file when it returns, and tells a subscriber at once', (t) => {
  const { source, events } = openIn(t, (path) => writeFileSync(path, withEpoch(3)));
  t.is(source.latest()?.epoch, 3);
  t.is(source.problem(), undefined);
  t.deepEqual(
    events.map((event) => event.kind),
    ['supply'],
  );
});

/** Ways in which a file is edited. */
const EDITS: Readonly<Record<string, (path: string, content: string) => void>> = {
  'is written in place': (path, content) => writeFileSync(path, content),
  'is replaced by a rename': (path, content) => writeFileAtomically(path, content),
  'is removed and made again': (path, content) => {
    rmSync(path);
    writeFileSync(path, content);
  },
};
for (const [what, edit] of Object.entries(EDITS)) {
  test(`openSupplyFile: follows a file that ${what}`, async (t) => {
    const opened = openIn(t, (path) => writeFileSync(path, withEpoch(1)));
    edit(opened.path, withEpoch(2));
    await epochSeen(opened, 2);
    edit(opened.path, withEpoch(3));
    await epochSeen(opened, 3);
    t.is(opened.events.filter((event) => event.kind === 'supply').length, 3);
  });
}

test('openSupplyFile: follows a mounted ConfigMap, whose links are swapped', async (t) => {
  const opened = openIn(t, (path) => {
    const folder = dirname(path);
    for (const epoch of [1, 2]) {
      mkdirSync(`${folder}/..v${epoch}`);
      writeFileSync(`${folder}/..v${epoch}/node.yaml`, withEpoch(epoch));
    }
    symlinkSync('..v1', `${folder}/..data`);
    symlinkSync('..data/node.yaml', path);
  });
  t.is(opened.source.latest()?.epoch, 1);
  symlinkSync('..v2', `${dirname(opened.path)}/..data_tmp`);
  renameSync(`${dirname(opened.path)}/..data_tmp`, `${dirname(opened.path)}/..data`);
  await t.notThrowsAsync(epochSeen(opened, 2));
});

test('openSupplyFile: keeps the last good supply on an invalid edit, names every fault with its line, and recovers', async (t) => {
  const opened = openIn(t, (path) => writeFileSync(path, withEpoch(1)));
  const bad = withEpoch(2)
    .replace('mac: 20:90:6f:0a:00:01', 'mac: nonsense')
    .replace('gateway: 10.0.8.1\n', 'gateway: 10.99.0.1\n');
  writeFileSync(opened.path, bad);
  await waitUntil(() => opened.source.problem(), { what: 'a problem' });
  t.is(opened.source.latest()?.epoch, 1);
  const line = bad.split('\n').findIndex((text) => text.includes('nonsense')) + 1;
  t.deepEqual(opened.source.problem()?.faults, [
    {
      path: `status.eniInfos[0].mac (line ${line})`,
      expected: 'a MAC address such as 20:90:6f:12:34:56',
      got: '"nonsense"',
    },
  ]);
  t.deepEqual(opened.errors, ['supply file is invalid, the last good one stays in force']);
  t.deepEqual(
    opened.events.map((event) => event.kind),
    ['supply', 'invalid'],
  );
  writeFileSync(opened.path, withEpoch(3));
  await epochSeen(opened, 3);
  t.is(opened.source.problem(), undefined);
});

const invalid = test.macro((t, content: string, want: RegExp) => {
  const { source, path } = openIn(t, (file) => writeFileSync(file, content));
  t.is(source.latest(), undefined);
  t.regex(source.problem()?.message ?? '', want);
  t.true(source.problem()?.message.startsWith(path));
});
test('openSupplyFile: says where YAML breaks', invalid, 'a: [1\nb: 2', /line 2, column 1: expected valid YAML/);
test('openSupplyFile: refuses a key given twice', invalid, `${EXAMPLE}\nkind: x`, /line \d+, column \d+: .*unique/);
test('openSupplyFile: refuses an empty file', invalid, '', /the whole: expected an object, got null/);
test(
  'openSupplyFile: refuses a file of many documents',
  invalid,
  `${EXAMPLE}---\n${EXAMPLE}`,
  /valid YAML.*multiple documents/,
);
test(
  'openSupplyFile: refuses aliases that multiply',
  invalid,
  `a: &a [1,1,1,1,1,1,1,1]\nb: &b [${'*a,'.repeat(20)}*a]\nc: &c [${'*b,'.repeat(20)}*b]`,
  /expected valid YAML, got .*alias/,
);
test(
  'openSupplyFile: refuses an alias that holds itself',
  invalid,
  EXAMPLE.replace(/^kind: .*$/m, 'kind: &a [*a]'),
  /got \[a value that refers to itself\]/,
);
test(
  'openSupplyFile: refuses lists without a bottom',
  invalid,
  `a: ${'['.repeat(100_000)}`,
  /expected valid YAML.*; and \d+ more$/,
);
test(
  'openSupplyFile: refuses a file that is too large',
  invalid,
  `# ${'x'.repeat(5_000_000)}`,
  /expected at most 4194304 bytes, got 5000002/,
);

test('openSupplyFile: refuses a pipe, which nobody may ever write to', (t) => {
  const { source } = openIn(t, (path) => execFileSync('mkfifo', [path]));
  t.regex(
    source.problem()?.message ?? '',
    /expected a readable NodeENIConfig file, got .* is a FIFO, not a regular file/,
  );
});

test('openSupplyFile: refuses the file of another node', (t) => {
  const { source } = openIn(t, (path) => writeFileSync(path, EXAMPLE), { nodeName: 'node-7' });
  t.regex(
    source.problem()?.message ?? '',
    /metadata\.name: expected node-7, the name of this node, got "10\.0\.0\.10"/,
  );
});

test('openSupplyFile: waits for a file, and a folder, that is not there yet', async (t) => {
  const opened = openIn(t, (path) => rmSync(dirname(path), { recursive: true }), { pollMs: 30 });
  t.regex(opened.source.problem()?.message ?? '', /expected a readable NodeENIConfig file, got ENOENT/);
  mkdirSync(dirname(opened.path));
  writeFileSync(opened.path, withEpoch(4));
  await epochSeen(opened, 4);
  t.deepEqual(opened.errors, ['supply file is invalid, there was none before it: this node is not changed yet']);
});

test('openSupplyFile: names the supply that the journal kept as the one in force', (t) => {
  const supply = openIn(t, (path) => writeFileSync(path, withEpoch(1))).source.latest();
  const opened = openIn(t, (path) => writeFileSync(path, 'nonsense'), { inForce: () => supply });
  t.deepEqual(opened.errors, ['supply file is invalid, the last good one stays in force']);
});

test('openSupplyFile: keeps the last good supply when the file is removed, and follows a folder that was made again', async (t) => {
  const opened = openIn(t, (path) => writeFileSync(path, withEpoch(1)), { pollMs: 50 });
  rmSync(dirname(opened.path), { recursive: true });
  await waitUntil(() => opened.source.problem(), { what: 'a problem' });
  t.is(opened.source.latest()?.epoch, 1);
  mkdirSync(dirname(opened.path));
  writeFileSync(opened.path, withEpoch(1));
  await waitUntil(() => opened.source.problem() === undefined, { what: 'recovery' });
  writeFileSync(opened.path, withEpoch(2));
  await t.notThrowsAsync(epochSeen(opened, 2));
});

test('openSupplyFile: warns of fields that it does not know', (t) => {
  const { source, errors } = openIn(t, (path) =>
    writeFileSync(path, EXAMPLE.replace('draining: false', 'drainin: true')),
  );
  t.not(source.latest(), undefined);
  t.deepEqual(errors, ['supply file has fields that are not known']);
});

test('close: stops telling', async (t) => {
  const opened = openIn(t, (path) => writeFileSync(path, withEpoch(1)), { pollMs: 10 });
  opened.source.close();
  writeFileSync(opened.path, withEpoch(2));
  await systemClock.sleep(100);
  t.is(opened.source.latest()?.epoch, 1);
  t.is(opened.events.length, 1);
});
