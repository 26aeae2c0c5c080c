import test from 'ava';
import { childEnv } from '../../sim/support/child-env.ts';
import { RunError, run, tryRun } from '../../sim/support/run.ts';

test('run: returns what the command printed, and hands it its input', async (t) => {
  t.is(await run(['cat'], { input: 'hello' }), 'hello');
});

test('run: names the command and its last words when it fails', async (t) => {
  const error = await t.throwsAsync(run(['sh', '-c', 'echo no such thing >&2; exit 3']), { instanceOf: RunError });
  t.is(error?.code, 'COMMAND_FAILED');
  t.regex(error?.message ?? '', /^sh -c .* ended with 3: no such thing$/);
});

test('tryRun: kills a command that does not end in time', async (t) => {
  const error = await t.throwsAsync(tryRun(['sleep', '60'], { timeoutMs: 50 }), { instanceOf: RunError });
  t.is(error?.code, 'COMMAND_TIMED_OUT');
  t.is(error?.result.signal, 'SIGKILL');
});

test("childEnv: leaves npm's folders out of PATH and puts the system's in", (t) => {
  const { PATH } = childEnv({ PATH: '/repo/node_modules/.bin:/opt/bin:/usr/bin', HOME: '/root' });
  t.is(PATH, '/opt/bin:/usr/bin:/usr/sbin:/sbin:/bin');
});
