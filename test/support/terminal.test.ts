import { existsSync } from 'node:fs';
import test from 'ava';
import { openTerminal, runInTerminal } from './terminal.ts';
import { waitUntil } from './wait-until.ts';

test('runInTerminal: gives the command a terminal of the wanted size and its exit code', async (t) => {
  const { screen, exitCode } = await runInTerminal(['sh', '-c', 'stty size; test -t 1 && echo tty; exit 3'], {
    columns: 100,
    rows: 30,
  });
  t.deepEqual(screen.slice(0, 2), ['30 100', 'tty']);
  t.is(screen.length, 30);
  t.is(exitCode, 3);
});

test('runInTerminal: keeps quotes and blanks of words', async (t) => {
  const { screen } = await runInTerminal(['printf', '%s|', "it's", 'a  b', '$HOME']);
  t.is(screen[0], "it's|a  b|$HOME|");
});

test('runInTerminal: shows what a person sees, not what was overwritten', async (t) => {
  const { screen, raw } = await runInTerminal(['printf', 'first\\r\\033[Ksecond\\n\\033[31mred\\033[0m\\n']);
  t.deepEqual(screen.slice(0, 2), ['second', 'red']);
  t.true(raw.includes('first'));
});

test('runInTerminal: keeps lines that scrolled out of sight', async (t) => {
  const { screen, lines } = await runInTerminal(['seq', '50'], { rows: 10 });
  t.is(lines.length, 50);
  t.is(lines[0], '1');
  t.is(screen[0], '42');
});

test('runInTerminal: takes the screen when it is as wanted, then types', async (t) => {
  const { screen, lines, exitCode } = await runInTerminal(['sh', '-c', 'echo ready; read -r word; echo "got $word"'], {
    until: (seen) => seen.includes('ready'),
    keys: 'hello\r',
  });
  t.deepEqual(
    screen.filter((line) => line !== ''),
    ['ready'],
  );
  t.deepEqual(lines, ['ready', 'hello', 'got hello']);
  t.is(exitCode, 0);
});

test('runInTerminal: Ctrl-C ends a command that waits', async (t) => {
  const { exitCode } = await runInTerminal(
    ['sh', '-c', 'trap "exit 7" INT; echo ready; while :; do sleep 0.05; done'],
    {
      until: (seen) => seen.includes('ready'),
    },
  );
  t.is(exitCode, 7);
});

test('openTerminal: a new size reaches the command; an end leaves nothing running', async (t) => {
  let pid = 0;
  {
    await using terminal = await openTerminal([
      'sh',
      '-c',
      'trap "stty size" WINCH; echo "pid $$"; while :; do sleep 0.05; done',
    ]);
    const screen = await terminal.waitFor('its pid', (seen) => seen.some((line) => /^pid \d+$/.test(line)));
    pid = Number(screen.find((line) => line.startsWith('pid '))?.slice(4));
    await terminal.resize(132, 43);
    await terminal.waitFor('the new size', (seen) => seen.includes('43 132'));
    t.is(terminal.screen().length, 43);
  }
  // Its parent, which has ended too, reaps it.
  const isGone = await waitUntil(() => !existsSync(`/proc/${pid}`), { what: 'the end of the command' });
  t.true(isGone);
});
