import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import test from 'ava';

const at = (path: string): string => new URL(`../../${path}`, import.meta.url).href;

/** A daemon with one setting of its own, which says how it ends. */
const DAEMON = `
import { ConfigError } from '${at('runtime/decode.ts')}';
import { runDaemon, runProgram } from '${at('runtime/program.ts')}';
import { option } from '${at('runtime/settings/option.ts')}';
import { choiceValue } from '${at('runtime/settings/option-value.ts')}';
import { readSettings } from '${at('runtime/settings/read-settings.ts')}';

class KnownError extends Error {}
const options = {
  end: option('Daemon', 'end', choiceValue('signal', 'itself', 'fault', 'known', 'wrong', 'done'), 'signal', 'How it ends.'),
  logLevel: option('Daemon', 'log-level', choiceValue('info', 'error'), 'info', 'Least important lines.'),
};
const program = { name: 'daemon', options, source: '', example: { flag: 'end', text: 'done' } };
const read = (input) => readSettings(program, input, () => {});

async function start({ end }, { log, identity, starting }) {
  if (end === 'known') throw new KnownError('the cable is out');
  if (end === 'wrong') throw new ConfigError('settings', [{ path: '--end', expected: 'another one', got: end }]);
  if (end === 'done') return undefined;
  const keepAlive = setInterval(() => {}, 1_000);
  starting.addEventListener('abort', () => log.info('start aborted', { why: starting.reason.message }));
  log.info('started', { identity });
  const endings = { itself: async () => {}, fault: async () => { throw new Error('a fault of ours'); } };
  return { ...(endings[end] && { ended: endings[end]() }), close: async () => { clearInterval(keepAlive); log.info('closed'); } };
}

runProgram(process, () => runDaemon(process, read, start), (error) => error instanceof KnownError);
`;

type Ended = { readonly code: number; readonly out: string; readonly err: string };

async function run(args: readonly string[], signal?: NodeJS.Signals): Promise<Ended> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', DAEMON, '--', 'daemon', ...args], {
    env: { ...process.env, POD_NAME: 'daemon-0' },
  });
  if (signal !== undefined) child.stdout.once('data', () => child.kill(signal));
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code, out, err };
}

const messagesOf = ({ out }: Ended): readonly string[] =>
  out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).msg]));

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`runDaemon: closes the daemon on ${signal} and ends with 0`, async (t) => {
    const ended = await run([], signal);
    t.is(ended.code, 0, ended.err);
    t.deepEqual(messagesOf(ended), ['started', 'start aborted', 'stopping', 'closed']);
    t.regex(ended.out, /"identity":"daemon-0"/);
    t.regex(ended.out, new RegExp(`ended by ${signal} before there was a certificate`));
  });
}

test('runDaemon: a daemon that has ended by itself is closed without a signal', async (t) => {
  const ended = await run(['--end=itself']);
  t.is(ended.code, 0, ended.err);
  t.deepEqual(messagesOf(ended), ['started', 'closed']);
});

test('runDaemon: a start that has done all leaves the process to end', async (t) => {
  const ended = await run(['--end=done']);
  t.deepEqual(ended, { code: 0, out: '', err: '' });
});

test('runDaemon: --help and --version are printed, and nothing is started', async (t) => {
  t.regex((await run(['--help'])).out, /^Usage: daemon \[FLAG\]/);
  t.deepEqual(await run(['--version']), { code: 0, out: '0.0.0-dev\n', err: '' });
});

test('runProgram: wrong settings are printed without a stack, and the exit code is 78', async (t) => {
  for (const args of [['--end=never'], ['--end=wrong']]) {
    const { code, err } = await run(args);
    t.is(code, 78);
    t.regex(err, /--end: expected /);
    t.notRegex(err, /^\s+at /m);
  }
});

test('runProgram: an expected error is printed without a stack, any other with it, and the exit code is 1', async (t) => {
  t.deepEqual(await run(['--end=known']), { code: 1, out: '', err: 'the cable is out\n' });
  const fault = await run(['--end=fault']);
  t.is(fault.code, 1);
  t.regex(fault.err, /^Error: a fault of ours\n {4}at /);
});
