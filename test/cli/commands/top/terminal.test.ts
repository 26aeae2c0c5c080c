import test from 'ava';
import { createTempDir } from '../../../support/temp-dir.ts';
import { openTerminal } from '../../../support/terminal.ts';
import { runCaptured } from '../../agent/captured.ts';
import { startFakeAgent } from '../../agent/fake-agent.ts';
import { POOL_SAMPLE, SUMMARY_SAMPLE } from '../../agent/samples.ts';

const top = (socket: string, ...flags: readonly string[]) => [
  process.execPath,
  'cli/main.ts',
  'top',
  '--socket',
  socket,
  ...flags,
];

async function openAgent() {
  const dir = createTempDir('top');
  const socket = dir.join('agent.sock');
  const agent = await startFakeAgent(socket, { pool: POOL_SAMPLE, summary: SUMMARY_SAMPLE });
  return {
    socket,
    agent,
    close: () => {
      agent.close();
      dir.close();
    },
  };
}

const hasLine = (pattern: RegExp) => (screen: readonly string[]) => screen.some((line) => pattern.test(line));

test('top: redraws in place, sorts, pauses, follows the size, and gives the screen back on q', async (t) => {
  const { socket, agent, close } = await openAgent();
  t.teardown(close);
  await using terminal = await openTerminal(['sh', '-c', `echo before; ${top(socket, '--interval', '0.2').join(' ')}`]);
  const screen = await terminal.waitFor('a frame', hasLine(/^addresses .*3\/8 in use/));
  t.true(terminal.isAlternate());
  t.true(terminal.isCursorHidden());
  t.is(screen.length, 24);
  t.regex(screen[0] ?? '', /^tke-eni top {2}node-1 {2}0\.1\.0\+0123abc {2}up 3h {2}compact .*\d\d:\d\d:\d\d$/);
  t.regex(screen.at(-1) ?? '', /^q quit {3}s sort: ENI/);

  agent.answers.summary = { ...SUMMARY_SAMPLE, drift: 9, uptimeMs: 4 * 3_600_000 };
  await terminal.waitFor('a later frame', hasLine(/drift 9 \(\+6\)/));
  t.true(hasLine(/^CALLS \(last \d+ s\)/)(terminal.screen()));

  terminal.type('s');
  await terminal.waitFor('another order', hasLine(/s sort: most in use/));
  terminal.type('p');
  await terminal.waitFor('a pause', hasLine(/PAUSED/));
  agent.answers.summary = { ...SUMMARY_SAMPLE, nodeName: 'renamed' };
  await terminal.resize(120, 30);
  const wide = await terminal.waitFor('the new size', (seen) => /^q quit/.test(seen[29] ?? ''));
  t.true((wide[0] ?? '').length > 100);
  t.false(hasLine(/renamed/)(wide), 'while it pauses nothing is asked');
  terminal.type('p');
  await terminal.waitFor('the picture to go on', hasLine(/renamed/));

  terminal.type('q');
  t.is(await terminal.exited, 0);
  t.false(terminal.isAlternate());
  t.false(terminal.isCursorHidden());
  t.deepEqual(
    terminal.screen().filter((line) => line !== ''),
    ['before'],
  );
});

test('top: shows that the agent went, keeps the last figures, and finds it again', async (t) => {
  const { socket, agent, close } = await openAgent();
  t.teardown(close);
  await using terminal = await openTerminal(top(socket, '--interval', '0.2'), { columns: 120 });
  await terminal.waitFor('a frame', hasLine(/3\/8 in use/));
  agent.close();
  const gone = await terminal.waitFor('that it is gone', hasLine(/agent does not answer/));
  t.true(hasLine(/3\/8 in use/)(gone));
  const again = await startFakeAgent(socket, { pool: POOL_SAMPLE, summary: { ...SUMMARY_SAMPLE, nodeName: 'back' } });
  t.teardown(again.close);
  const back = await terminal.waitFor('that it is back', hasLine(/back {2}0\.1\.0/));
  t.false(hasLine(/agent does not answer/)(back));
  terminal.type('\u0003');
  t.is(await terminal.exited, 0);
  t.false(terminal.isAlternate());
});

test('top: gives the screen back on SIGTERM', async (t) => {
  const { socket, close } = await openAgent();
  t.teardown(close);
  await using terminal = await openTerminal(['sh', '-c', `${top(socket).join(' ')} & echo pid $!; wait $!`]);
  await terminal.waitFor('a frame', hasLine(/3\/8 in use/));
  const pid = Number(/pid (\d+)/.exec(terminal.raw())?.[1]);
  process.kill(pid, 'SIGTERM');
  t.is(await terminal.exited, 0);
  t.false(terminal.isAlternate());
  t.false(terminal.isCursorHidden());
});

test('top: needs a terminal, and says what to do without one', async (t) => {
  const { socket, close } = await openAgent();
  t.teardown(close);
  const { code, stderr } = await runCaptured(['top', '--socket', socket]);
  t.is(code, 2);
  t.regex(stderr, /next: tke-eni top --once/);
  const { stdout } = await runCaptured(['top', '--once', '--socket', socket], { columns: 100 });
  t.regex(stdout, /^tke-eni top {2}node-1/);
  t.regex(stdout, /CALLS \(since the agent started\)/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: there must be none.
  t.notRegex(stdout, /\u001b|q quit/);
});

test('top: does not draw on a terminal that cannot', async (t) => {
  const { code, stdout, stderr } = await runCaptured(['top'], { isTerminal: true, env: { TERM: 'dumb' } });
  t.is(code, 2);
  t.is(stdout, '');
  t.regex(stderr, /dumb terminal[\s\S]*next: tke-eni top --once/);
});

test('top: refuses an interval that would be a flood or none', async (t) => {
  for (const interval of ['0', '0.01', '1e9', '-1']) {
    const { code, stderr } = await runCaptured(['top', '--once', `--interval=${interval}`, '--socket', '/nonexistent']);
    t.is(code, 64, stderr);
  }
});
