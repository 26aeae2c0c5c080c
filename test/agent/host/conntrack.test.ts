import { join } from 'node:path';
import test from 'ava';
import { run } from '../../../sim/support/run.ts';

const MODULE = join(import.meta.dirname, '../../../agent/host/conntrack.ts');

/** Takes every file descriptor, flushes an address, and prints what was logged and how the other way of flushing ends. */
const PROGRAM = `
  import { openSync } from 'node:fs';
  import { openConntrack } from ${JSON.stringify(MODULE)};
  const logged = [];
  const conntrack = openConntrack({ warn: (text, { ip, side, fault }) => logged.push([text, ip, side, fault]) });
  await import('node:child_process');
  const taken = [];
  try {
    for (;;) taken.push(openSync('/dev/null'));
  } catch {}
  await conntrack.flush(['10.0.0.1']);
  const thrown = await conntrack.flushOrThrow(['10.0.0.1']).then(() => 'nothing', (error) => error.message);
  console.log(JSON.stringify({ logged, thrown }));
`;

test('openConntrack: without a free file descriptor says so and goes on', async (t) => {
  const node = [process.execPath, '--input-type=module', '-e', PROGRAM];
  const stdout = await run(['bash', '-c', 'ulimit -n 64; exec "$@"', 'bash', ...node]);
  const { logged, thrown } = JSON.parse(stdout);
  t.is(logged.length, 4, 'once for each side of an entry');
  t.deepEqual(logged[0].slice(0, 3), ['conntrack entries not flushed', '10.0.0.1', '--orig-src']);
  t.regex(logged[0][3], /EMFILE/);
  t.regex(thrown, /^conntrack --orig-src 10\.0\.0\.1: .*EMFILE/);
});
