import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { bundle } from '../../../tools/build/bundle.ts';
import { describeRelease } from '../../../tools/build/release.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');

function makeFolder(t: ExecutionContext): string {
  const path = mkdtempSync(join(tmpdir(), 'tke-test-'));
  t.teardown(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("bundle: loads ffi-rs's addon from beside the executable and searches nowhere else", async (t) => {
  const { code, needsFfi } = await bundle(ROOT, 'netlink/libc.ts', '', 'lazy');
  t.true(needsFfi);
  t.regex(code, /process\.dlopen\(/);
  t.notRegex(code, /getReport|ffi-rs-linux/);
});

test('bundle: keeps ffi-rs, grpc-js and netlink out of the CNI executables', async (t) => {
  const { code, needsFfi, sources } = await bundle(ROOT, 'cni-plugins/main.ts', '1.2.3+abc', 'eager');
  t.false(needsFfi);
  t.deepEqual(
    sources.filter((path) => !/^(cni-plugins|agent\/api|runtime)\//.test(path)),
    [],
  );
  t.notRegex(code, /grpc-js|AF_NETLINK/);
  t.regex(code, /"1\.2\.3\+abc"/);
  t.true(code.startsWith('//# allFunctionsCalledOnLoad\n'), 'V8 reads the hint at the very top only');
});

test('bundle: makes the same bytes of the same sources', async (t) => {
  const bundles = await Promise.all([1, 2].map(() => bundle(ROOT, 'cni-plugins/main.ts', 'x', 'eager')));
  t.is(bundles[0]?.code, bundles[1]?.code);
});

test('describeRelease: names the last commit that touched the sources, and what is not committed', async (t) => {
  const root = makeFolder(t);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd: root })
      .toString()
      .trim();
  const commit = (file: string, content: string) => {
    writeFileSync(join(root, file), content);
    git('add', '.');
    git('commit', '-qm', file);
    return git('log', '-1', '--format=%h');
  };
  writeFileSync(join(root, 'package.json'), '{"version":"1.2.3"}');
  t.is(await describeRelease(root, ['a.ts']), '1.2.3', 'without git');
  git('init', '-q');
  const first = commit('a.ts', '1');
  t.is(await describeRelease(root, ['a.ts']), `1.2.3+${first}`);
  commit('unrelated.md', 'x');
  t.is(await describeRelease(root, ['a.ts']), `1.2.3+${first}`);
  writeFileSync(join(root, 'a.ts'), '2');
  t.is(await describeRelease(root, ['a.ts']), `1.2.3+${first}.dirty`);
});
