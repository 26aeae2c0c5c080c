// Each case starts a shell: five seconds of a core.
import test from 'ava';
import { run } from '../../../sim/support/run.ts';
import { openTerminal } from '../../support/terminal.ts';
import { createShellScene } from './shell-scene.ts';

const scene = createShellScene('bash');
test.after.always(() => scene[Symbol.dispose]());

/** Lets bash call the function as it does on TAB, and returns what it would offer. */
async function complete(line: string): Promise<readonly string[]> {
  const script = `
    source "$2"
    COMP_LINE=$1 COMP_POINT=\${#1} COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
    _tke_eni
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const answer = await run(['bash', '--norc', '-c', script, 'bash', line, scene.script], { env: scene.env });
  return answer.split('\n').filter((word) => word !== '');
}

const offers = test.macro({
  exec: async (t, line: string, wanted: readonly string[]) => {
    const words = await complete(line);
    t.deepEqual(
      wanted.filter((word) => !words.includes(word)),
      [],
      `offered: ${words.join(' ')}`,
    );
  },
  title: (_, line) => `completion bash: offers what may follow «${line}»`,
});

const exactly = test.macro({
  exec: async (t, line: string, wanted: readonly string[]) => {
    t.deepEqual(await complete(line), wanted);
  },
  title: (_, line) => `completion bash: offers exactly what may follow «${line}»`,
});

test(offers, 'tke-eni ', ['pods', 'status', 'completion', 'version']);
test(exactly, 'tke-eni vers', ['version']);
test(exactly, 'tke-eni completion ', ['bash', 'zsh', 'fish']);
test(exactly, 'tke-eni completion z', ['zsh']);
test(exactly, 'tke-eni completion zsh ', []);
test(offers, 'tke-eni pods --', ['--output=', '--netns=', '--help']);
test(exactly, 'tke-eni pods --outp', ['--output=']);
test(exactly, 'tke-eni pods --output=j', ['json']);
test(exactly, 'tke-eni pods --output j', ['json']);
test(exactly, 'tke-eni pods -o y', ['yaml']);
test(exactly, 'tke-eni --color never completion f', ['fish']);
test(exactly, 'tke-eni --color=never completion f', ['fish']);
test(offers, 'tke-eni --color ', ['auto', 'always', 'never']);
test(exactly, 'tke-eni help vers', ['version']);
test(exactly, 'tke-eni nonsense ', []);
test(offers, 'tke-eni --kubeconfig /et', ['/etc']);
test(offers, 'tke-eni --state-dir=/et', ['/etc']);

test('completion bash: TAB in a real terminal completes command, option and value', async (t) => {
  await using terminal = await openTerminal(['bash', '--norc', '--noprofile', '-i'], {
    env: { ...scene.env, PS1: '> ' },
  });
  await terminal.waitFor('a prompt', (screen) => screen.some((line) => line.startsWith('>')));
  terminal.type(`source ${scene.script}; clear; echo loaded\r`);
  await terminal.waitFor('the script', (screen) => screen.includes('loaded'));
  terminal.type('tke-eni compl\tz\t');
  await terminal.waitFor('the completed line', (screen) => screen.includes('> tke-eni completion zsh'));
  terminal.type('--color=al\t');
  const screen = await terminal.waitFor('the completed value', (seen) =>
    seen.includes('> tke-eni completion zsh --color=always'),
  );
  t.true(screen.length > 0);
});
