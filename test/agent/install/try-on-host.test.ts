import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { missingOf, tryOnHost } from '../../../agent/install/try-on-host.ts';
import { createTempDir } from '../../support/temp-dir.ts';

const PATH = '/opt/cni/bin/tke-route-eni';

const misses = test.macro((t, said: string, expected: string) => {
  t.is(missingOf(said, PATH), expected);
});

// As the loaders of glibc 2.36 and unshare of util-linux 2.38 say it.
test(
  'missingOf: names a library that is not there',
  misses,
  `${PATH}: error while loading shared libraries: libatomic.so.1: cannot open shared object file: No such file or directory`,
  'libatomic.so.1: cannot open shared object file: No such file or directory',
);
test(
  'missingOf: names every version that a library lacks, once',
  misses,
  [
    `${PATH}: /usr/lib64/libstdc++.so.6: version \`GLIBCXX_3.4.21' not found (required by ${PATH})`,
    `${PATH}: /usr/lib64/libstdc++.so.6: version \`GLIBCXX_3.4.20' not found (required by ${PATH})`,
    `${PATH}: /lib64/libc.so.6: version \`GLIBC_2.28' not found (required by ${PATH})`,
    `${PATH}: /lib64/libc.so.6: version \`GLIBC_2.28' not found (required by /lib64/libother.so)`,
  ].join('\n'),
  "libstdc++.so.6: version `GLIBCXX_3.4.21' not found; libstdc++.so.6: version `GLIBCXX_3.4.20' not found; " +
    "libc.so.6: version `GLIBC_2.28' not found",
);
test(
  'missingOf: finds out that the loader itself is not there',
  misses,
  `unshare: failed to execute ${PATH}: No such file or directory`,
  'its loader (ld-linux) is not there: no glibc',
);
for (const said of [
  '',
  "unshare: cannot change root directory to '/proc/1/root': Operation not permitted",
  'unshare: failed to execute /opt/cni/bin/tke-route-eni: Permission denied',
  '{"cniVersion":"1.0.0","code":999,"msg":"not found"}',
]) {
  test(`missingOf: takes this for no complaint of the loader: ${said}`, misses, said, '');
}

test('tryOnHost: says what is wrong with the complete program of a launcher, and not that the loader is missing', async (t) => {
  const dir = createTempDir('try-on-host');
  t.teardown(() => dir.close());
  const launcher = dir.join('tke-route-eni');
  const says = 'the file tke-eni-cni beside this executable cannot be run';
  writeFileSync(launcher, `#!/bin/sh\necho '{"code":11,"msg":"${says}"}'\nexit 1\n`, { mode: 0o755 });
  const complete = dir.join('tke-eni-cni');
  const why = async (): Promise<string> => JSON.stringify(await tryOnHost('/', launcher));
  t.regex(
    await why(),
    /"fails".*there is no \S+tke-eni-cni, the complete program that the launcher needs: --plugin-dir has/,
  );
  writeFileSync(complete, '', { mode: 0o644 });
  t.regex(await why(), /tke-eni-cni is not executable/);
  chmodSync(complete, 0o755);
  t.regex(await why(), /its loader \(ld-linux\) is not there: no glibc/);
  rmSync(complete);
  mkdirSync(complete);
  t.regex(await why(), /tke-eni-cni is a folder/);
});

test('tryOnHost: tells what runs, what the loader refuses, and what could not be tried', async (t) => {
  const dir = createTempDir('try-on-host');
  t.teardown(() => dir.close());
  const script = (name: string, text: string): string => {
    writeFileSync(dir.join(name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    return dir.join(name);
  };
  t.deepEqual(await tryOnHost('/', script('runs', 'test "$CNI_COMMAND" = VERSION')), { kind: 'runs' });
  const complaint = 'x: error while loading shared libraries: libx.so: cannot open';
  t.deepEqual(await tryOnHost('/', script('refused', `echo '${complaint}' >&2; exit 127`)), {
    kind: 'fails',
    why: 'libx.so: cannot open',
  });
  t.deepEqual(await tryOnHost('/', script('odd', 'echo odd >&2; exit 3')), { kind: 'unknown', why: 'odd' });
  t.like(await tryOnHost('/', dir.join('none')), { kind: 'unknown' });

  mkdirSync(dir.join('host', dir.path), { recursive: true });
  t.like(await tryOnHost(dir.join('host'), dir.join('runs')), { kind: 'unknown' });
  writeFileSync(dir.join('host', dir.path, 'runs'), 'another');
  t.deepEqual(await tryOnHost(dir.join('host'), dir.join('runs')), {
    kind: 'unknown',
    why: `${dir.join('runs')} on the host is another file than here`,
  });
});
