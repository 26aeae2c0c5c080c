import { existsSync } from 'node:fs';
import anyTest from 'ava';
import { run } from '../../../sim/support/run.ts';
import { openTerminal } from '../../support/terminal.ts';
import { createShellScene } from './shell-scene.ts';

/** Runs a test where the shell is installed, and reports it as skipped elsewhere. */
const where = (shell: string) => (existsSync(`/usr/bin/${shell}`) ? anyTest : anyTest.skip);

where('zsh')('completion zsh: TAB in a real terminal completes command, word, option and value', async (t) => {
  using scene = createShellScene('zsh');
  await run(['zsh', '-n', scene.script]);
  await using terminal = await openTerminal(['zsh', '-f', '-i'], { env: { ...scene.env, PS1: '> ' }, columns: 100 });
  await terminal.waitFor('a prompt', (screen) => screen.some((line) => line.startsWith('>')));
  terminal.type(`fpath=(${scene.dir} $fpath); autoload -Uz compinit; compinit -u -D; clear; echo loaded\r`);
  await terminal.waitFor('the script', (screen) => screen.includes('loaded'));
  terminal.type('tke-eni compl\t');
  await terminal.waitFor('the command', (screen) => screen.includes('> tke-eni completion'));
  terminal.type('z\t');
  await terminal.waitFor('the word', (screen) => screen.includes('> tke-eni completion zsh'));
  terminal.type('--col\tal\t');
  const line = '> tke-eni completion zsh --color=always';
  const screen = await terminal.waitFor('the value', (seen) => seen.includes(line));
  t.true(screen.includes(line));
});

where('zsh')('completion zsh: shows what each command does', async (t) => {
  using scene = createShellScene('zsh');
  await using terminal = await openTerminal(['zsh', '-f', '-i'], { env: { ...scene.env, PS1: '> ' }, rows: 60 });
  await terminal.waitFor('a prompt', (screen) => screen.some((line) => line.startsWith('>')));
  terminal.type(`fpath=(${scene.dir} $fpath); autoload -Uz compinit; compinit -u -D; clear; echo loaded\r`);
  await terminal.waitFor('the script', (screen) => screen.includes('loaded'));
  terminal.type('tke-eni \t');
  const screen = await terminal.waitFor('the list', (seen) =>
    seen.some((line) => /^version +-- print the release/.test(line)),
  );
  t.true(screen.some((line) => /^completion +-- print what makes a shell complete/.test(line)));
});

where('fish')('completion fish: offers commands, words, options and values', async (t) => {
  using scene = createShellScene('fish');
  await run(['fish', '--no-execute', scene.script]);
  const complete = async (line: string): Promise<readonly string[]> => {
    const script = `source ${scene.script}; complete --do-complete='${line}'`;
    const answer = await run(['fish', '--no-config', '-c', script], { env: scene.env });
    return answer.split('\n').flatMap((found) => found.split('\t')[0] || []);
  };
  t.deepEqual(await complete('tke-eni vers'), ['version']);
  t.deepEqual([...(await complete('tke-eni completion '))].sort(), ['bash', 'fish', 'zsh']);
  t.deepEqual(await complete('tke-eni completion zsh '), []);
  t.deepEqual(await complete('tke-eni --color never completion f'), ['fish']);
  t.deepEqual(await complete('tke-eni pods --outp'), ['--output=']);
  t.deepEqual(await complete('tke-eni pods --output=j'), ['--output=json']);
  t.deepEqual(await complete('tke-eni pods -o y'), ['yaml']);
  t.false((await complete('tke-eni pods ')).includes('version'), 'commands are offered once');
  t.true((await complete('tke-eni --kubeconfig /et')).includes('/etc/'));
  t.deepEqual(await complete('tke-eni --state-dir=/et'), ['--state-dir=/etc/']);
});
