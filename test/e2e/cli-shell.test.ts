import { chmodSync, copyFileSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { type RunResult, tryRun } from '../../sim/support/run.ts';
import { buildExecutables } from '../../tools/build.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { openTerminal, runInTerminal } from '../support/terminal.ts';

const dir = createTempDir('cli');
/** Where anybody may run it, as on a node: the executable and what has to lie beside it. */
const CLI = dir.join('bin', 'tke-eni');

test.before(async () => {
  const { binDir } = await buildExecutables(['tke-eni']);
  chmodSync(dir.path, 0o755);
  mkdirSync(dir.join('bin', 'tke-eni-lib'), { recursive: true });
  for (const name of ['tke-eni', 'ffi-rs.node', 'tke-eni-lib/libatomic.so.1']) {
    copyFileSync(join(binDir, name), dir.join('bin', name));
  }
});
test.after.always(() => dir.close());

const cli = (...words: readonly string[]): Promise<RunResult> => tryRun([CLI, ...words]);
/** Somebody who is not root, without groups and capabilities. */
const asNobody = (...words: readonly string[]): Promise<RunResult> =>
  tryRun(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all', CLI, ...words]);

test('tke-eni: ends with 0, 2 and 64', async (t) => {
  const version = await cli('version');
  t.is(version.code, 0);
  t.regex(version.stdout, /^\d+\.\d+\.\d+\+\S+\n$/);
  t.is((await cli('--version')).stdout, version.stdout);
  const nothing = await cli('check', '--state-dir', dir.join('nothing'));
  t.is(nothing.code, 2);
  t.is(nothing.stdout, '');
  t.regex(nothing.stderr, /^tke-eni: .+\n {2}next: .+\n$/);
  const wrong = await cli('rotues');
  t.is(wrong.code, 64);
  t.is(wrong.stderr, 'tke-eni: there is no command "rotues"; did you mean "routes"?\n  next: see tke-eni help\n');
});

test('tke-eni: runs through a link and from any folder', async (t) => {
  symlinkSync(CLI, dir.join('linked'));
  const ended = await tryRun([dir.join('linked'), 'links', '-o', 'json'], { cwd: '/proc' });
  t.is(ended.code, 0, ended.stderr);
  t.true(JSON.parse(ended.stdout).some((link: { readonly ifname?: string }) => link.ifname === 'lo'));
});

test('tke-eni: is quiet when nobody reads on', async (t) => {
  const script = `set -o pipefail; "$1" man | head -n 1`;
  const ended = await tryRun(['bash', '-c', script, 'bash', CLI]);
  t.deepEqual([ended.code, ended.stderr], [0, '']);
  t.regex(ended.stdout, /^\.TH TKE-ENI 8 /);
});

test('tke-eni: says so when its output has no room', async (t) => {
  const ended = await tryRun(['sh', '-c', '"$1" man > /dev/full', 'sh', CLI]);
  t.is(ended.code, 2);
  t.regex(ended.stderr, /^tke-eni: man: ENOSPC: no space left on device, write\n {2}next: make room/);
});

const SOCKET_NEEDERS = ['pool', 'status'];
const JOURNAL_NEEDERS = ['check', 'diff', 'repair'];

test('tke-eni: tells somebody who is not root what needs root', async (t) => {
  const stateDir = dir.join('state');
  mkdirSync(stateDir);
  for (const name of ['journal.db', 'journal.db-journal', 'node.json']) {
    writeFileSync(join(stateDir, name), '', { mode: 0o600 });
  }
  const socket = join(stateDir, 'agent.sock');
  const server = createServer().listen(socket);
  await new Promise((resolve) => server.once('listening', resolve));
  chmodSync(socket, 0o600);
  t.teardown(() => server.close());
  for (const mode of [0o755, 0o700]) {
    chmodSync(stateDir, mode);
    for (const command of [...SOCKET_NEEDERS, ...JOURNAL_NEEDERS]) {
      const { code, stdout, stderr } = await asNobody(command, '--state-dir', stateDir, '--socket', socket);
      const thing = SOCKET_NEEDERS.includes(command) ? 'agent.sock' : 'journal.db';
      t.is(code, 2, command);
      t.is(stdout, '', command);
      t.true(stderr.includes(thing), `${command}: ${stderr}`);
      t.regex(stderr, /root/, command);
      t.regex(stderr, /\n {2}next: .*root/, command);
    }
  }
});

test('tke-eni: what needs no root works without', async (t) => {
  for (const command of ['version', 'help', 'routes', 'rules', 'links', 'addrs', 'neigh']) {
    const { code, stdout, stderr } = await asNobody(command, '--state-dir', dir.join('nothing'));
    t.is(code, 0, `${command}: ${stderr}`);
    t.true(stdout.length > 0, command);
  }
  // The namespace of another process is entered by setns(2).
  const entered = await asNobody('routes', '--netns', '/proc/1/ns/net');
  t.is(entered.code, 2);
  t.regex(entered.stderr, /^tke-eni: .*\/proc\/1\/ns\/net.*\n {2}next: run as root, or with CAP_SYS_ADMIN\n$/);
});

const ESCAPE = '\u001b[';

test('tke-eni: colours on a terminal only, and not where NO_COLOR, TERM or --color say no', async (t) => {
  const coloured = async (words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    (await runInTerminal([CLI, 'help', ...words], { env })).raw.includes(ESCAPE);
  t.true(await coloured([]));
  t.false(await coloured([], { NO_COLOR: '1' }));
  t.false(await coloured([], { TERM: 'dumb' }));
  t.false(await coloured(['--color=never']));
  t.true(await coloured(['--color=always'], { NO_COLOR: '1' }));
  t.false((await cli('help')).stdout.includes(ESCAPE));
  t.true((await cli('help', '--color=always')).stdout.includes(ESCAPE));
});

for (const columns of [80, 160]) {
  test(`tke-eni: help fills a terminal of ${columns} columns and no more`, async (t) => {
    const { lines, raw } = await runInTerminal([CLI, 'help', 'routes'], { columns });
    // A line that is too long would be two on the screen.
    t.is(lines.length, raw.trimEnd().split('\r\n').length);
    t.true(lines.some((line) => line.length > columns * 0.8));
  });
}

test('tke-eni: Ctrl-C ends what follows something, with 0', async (t) => {
  await using terminal = await openTerminal(['ip', 'netns', 'exec', await ownNetns(t), CLI, 'watch']);
  await terminal.waitFor('its first words', (screen) => screen.some((line) => line !== ''));
  terminal.type('\u0003');
  t.is(await terminal.exited, 0);
});

async function ownNetns(t: { teardown(end: () => Promise<unknown>): void }): Promise<string> {
  const name = `tke-test-${process.pid}-watch`;
  await tryRun(['ip', 'netns', 'add', name]);
  t.teardown(() => tryRun(['ip', 'netns', 'del', name]));
  return name;
}

test('tke-eni completion: offers the namespaces of this node, and the tables of the one that the line names', async (t) => {
  const name = await netnsWithTable(t, 'tab');
  const offered = async (line: string): Promise<readonly string[]> => {
    const script = `
      source <("$1" completion bash)
      COMP_LINE=$2 COMP_POINT=\${#2}
      _tke_eni
      printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await tryRun(['bash', '--norc', '-c', script, 'bash', CLI, line]);
    return stdout.trim().split('\n');
  };
  t.deepEqual(await offered(`${CLI} routes --netns ${name.slice(0, -2)}`), [name]);
  t.deepEqual(await offered(`${CLI} --netns=${name.slice(0, -2)}`), [name]);
  t.deepEqual(await offered(`${CLI} --netns=${name} routes --table 4`), ['40971']);
  t.deepEqual(await offered(`${CLI} routes --netns ${name} --table=4`), ['40971']);
  t.deepEqual(await offered(`${CLI} routes --netns nowhere-${name} --table 4`), ['']);
  // Whoever may not look is offered nothing, and sees no error.
  t.deepEqual(await asNobody('__complete', 'pod', '--netns', name), { code: 0, signal: null, stdout: '', stderr: '' });
});

/** Runs a test where the shell is installed, and reports it as skipped elsewhere. */
const where = (shell: string) => (existsSync(`/usr/bin/${shell}`) ? test : test.skip);

where('zsh')('tke-eni completion zsh: offers the tables of the namespace that the line names', async (t) => {
  const name = await netnsWithTable(t, 'zsh');
  writeFileSync(dir.join('_tke-eni'), (await cli('completion', 'zsh')).stdout);
  const env = { PATH: `${dir.join('bin')}:/usr/sbin:/usr/bin`, PS1: '> ', HOME: dir.path };
  await using terminal = await openTerminal(['zsh', '-f', '-i'], { env, columns: 120 });
  await terminal.waitFor('a prompt', (screen) => screen.some((line) => line.startsWith('>')));
  terminal.type(`fpath=(${dir.path} $fpath); autoload -Uz compinit; compinit -u -D; clear; echo loaded\r`);
  await terminal.waitFor('the script', (screen) => screen.includes('loaded'));
  terminal.type(`tke-eni --netns ${name.slice(0, -2)}\t`);
  await terminal.waitFor('the namespace', (screen) => screen.includes(`> tke-eni --netns ${name}`));
  terminal.type('routes --table 4\t');
  const line = `> tke-eni --netns ${name} routes --table 40971`;
  t.true((await terminal.waitFor('the table', (screen) => screen.includes(line))).includes(line));
});

where('fish')('tke-eni completion fish: offers the tables of the namespace that the line names', async (t) => {
  const name = await netnsWithTable(t, 'fish');
  writeFileSync(dir.join('tke-eni.fish'), (await cli('completion', 'fish')).stdout);
  const env = { PATH: `${dir.join('bin')}:/usr/sbin:/usr/bin`, HOME: dir.path };
  const offered = async (line: string): Promise<string> => {
    const script = `source ${dir.join('tke-eni.fish')}; complete --do-complete='${line}'`;
    // Word and description.
    return (await tryRun(['fish', '--no-config', '-c', script], { env })).stdout.split('\t')[0] ?? '';
  };
  t.is((await offered(`tke-eni routes --netns ${name.slice(0, -2)}`)).trim(), name);
  t.is((await offered(`tke-eni --netns=${name} routes --table 4`)).trim(), '40971');
});

async function netnsWithTable(t: { teardown(end: () => Promise<unknown>): void }, stem: string): Promise<string> {
  const name = `tke-test-${process.pid}-${stem}`;
  t.teardown(() => tryRun(['ip', 'netns', 'del', name]));
  await tryRun(['ip', 'netns', 'add', name]);
  await tryRun(['ip', '-n', name, 'link', 'set', 'lo', 'up']);
  await tryRun(['ip', '-n', name, 'route', 'add', 'blackhole', '10.9.9.9', 'table', '40971']);
  return name;
}

test('tke-eni man: is a page that man reads without a warning', async (t) => {
  const { stdout: page } = await cli('man');
  // What mandoc and groff would complain of first: requests that are none, and lines that begin with a control character.
  const requests = new Set([...page.matchAll(/^[.']\s*(\S+)/gm)].map(([, request = '']) => request));
  const known = ['TH', 'SH', 'SS', 'TP', 'PP', 'B', 'I', 'BR', 'RS', 'RE', 'nf', 'fi'];
  t.deepEqual(
    [...requests].filter((request) => !known.includes(request)),
    [],
  );
  if (!existsSync('/usr/bin/groff')) {
    t.log('groff is not installed: the page was not set');
    return;
  }
  writeFileSync(dir.join('tke-eni.8'), page);
  const set = await tryRun(['groff', '-man', '-ww', '-Tutf8', '-P-c', dir.join('tke-eni.8')]);
  t.deepEqual([set.code, set.stderr], [0, '']);
  t.regex(set.stdout, /tke-eni - explain what a node does with the packets of its Pods/);
});
