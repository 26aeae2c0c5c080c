import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import test from 'ava';
import { drainSpool, type SpoolDeps, watchSpool } from '../../../agent/attachment/spool.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';

function spool(release: SpoolDeps['release']) {
  const dir = createTempDir('spool');
  const pending: number[] = [];
  const deps: SpoolDeps = {
    ...{ directory: dir.path, release, clock: systemClock, log: silentLogger },
    pending: (count) => pending.push(count),
  };
  const put = (name: string, writtenAtBootMs: number, change: object = {}) =>
    writeFileSync(
      dir.join(name),
      JSON.stringify({ containerId: name, ifName: 'eth0', netns: '', writtenAtBootMs, ...change }),
    );
  return { dir, deps, put, pending };
}

test('drainSpool: does DELs in the order in which they were written, then removes their files', async (t) => {
  const done: string[] = [];
  const { dir, deps, put, pending } = spool(async ({ containerId }) => {
    t.true(existsSync(dir.join(containerId)), 'the file goes after its DEL');
    done.push(containerId);
  });
  t.teardown(() => dir.close());
  put('b.json', 2);
  put('a.json', 3);
  put('c.json', 1);
  t.is(await drainSpool(deps), 0);
  t.deepEqual(done, ['c.json', 'b.json', 'a.json']);
  t.deepEqual(readdirSync(dir.path), []);
  t.deepEqual(pending, [3, 0]);
});

test('drainSpool: keeps the file of a DEL that failed, and does the others', async (t) => {
  const { dir, deps, put } = spool(async ({ containerId }) => {
    if (containerId === 'a.json') throw new Error('EPERM');
  });
  t.teardown(() => dir.close());
  put('a.json', 1);
  put('b.json', 2);
  t.is(await drainSpool(deps), 1);
  t.deepEqual(readdirSync(dir.path), ['a.json']);
});

test('drainSpool: sets aside what it cannot read and passes over files that are being written', async (t) => {
  const { dir, deps } = spool(async () => t.fail('nothing to release'));
  t.teardown(() => dir.close());
  writeFileSync(dir.join('torn.json'), '{"containerId": "c');
  writeFileSync(dir.join('wrong.json'), '{"containerId": 7}');
  writeFileSync(dir.join('large.json'), '{"containerId": "c", "ifName": "eth0", "netns": ""}');
  truncateSync(dir.join('large.json'), 2 ** 40);
  writeFileSync(dir.join('.a.json.tmp'), 'half');
  t.is(await drainSpool(deps), 0);
  t.deepEqual(readdirSync(dir.path).sort(), [
    '.a.json.tmp',
    'large.json.rejected',
    'torn.json.rejected',
    'wrong.json.rejected',
  ]);
});

test('drainSpool: is not held up by what is no file', async (t) => {
  const { dir, deps, put } = spool(async () => {});
  t.teardown(() => dir.close());
  execFileSync('mkfifo', [dir.join('pipe.json')]);
  symlinkSync(dir.join('pipe.json'), dir.join('link.json'));
  mkdirSync(dir.join('folder.json'));
  put('a.json', 1);
  t.is(await drainSpool(deps), 0);
  t.deepEqual(readdirSync(dir.path).sort(), ['folder.json.rejected', 'link.json.rejected', 'pipe.json.rejected']);
});

test('watchSpool: drains when a file arrives', async (t) => {
  const done: string[] = [];
  const { dir, deps, put } = spool(async ({ containerId }) => void done.push(containerId));
  const watching = watchSpool(deps);
  t.teardown(() => {
    watching.close();
    dir.close();
  });
  put('a.json', 1);
  await waitUntil(() => done.length === 1 && readdirSync(dir.path).length === 0, { what: 'the DEL done' });
  t.deepEqual(done, ['a.json']);
});

test('watchSpool: moves a file in the place of its folder aside, and takes DELs again', async (t) => {
  const done: string[] = [];
  const { dir, deps, put } = spool(async ({ containerId }) => void done.push(containerId));
  t.teardown(() => dir.close());
  rmSync(dir.path, { recursive: true });
  writeFileSync(dir.path, 'not a folder');
  t.teardown(() => rmSync(`${dir.path}.aside-1`));
  const watched = watchSpool(deps);
  t.teardown(() => watched.close());
  await watched.drain();
  put('a.json', 1);
  await waitUntil(() => done.length === 1, { what: 'the DEL done' });
  t.is(readFileSync(`${dir.path}.aside-1`, 'utf8'), 'not a folder');
});

test('watchSpool: outlives a folder that cannot be listed, and drains it later', async (t) => {
  const done: string[] = [];
  const { dir, deps, put } = spool(async ({ containerId }) => void done.push(containerId));
  t.teardown(() => dir.close());
  rmSync(dir.path, { recursive: true });
  writeFileSync(dir.path, 'not a folder');
  const directory = dir.join('below');
  const watched = watchSpool({ ...deps, directory });
  t.teardown(() => watched.close());
  await t.notThrowsAsync(watched.drain());
  rmSync(dir.path);
  mkdirSync(directory, { recursive: true });
  put('below/a.json', 1);
  await watched.drain();
  t.deepEqual(done, ['below/a.json']);
});
