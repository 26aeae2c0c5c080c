import test from 'ava';
import fc from 'fast-check';
import { type Completion, findCompletion } from '../../../cli/completion/complete-line.ts';
import { ALL_COMMANDS } from '../../../cli/program/run-program.ts';
import { assertLaw } from '../../support/law.ts';

const find = (line: string): Completion => findCompletion(line.split(' '), ALL_COMMANDS);

function wordsOf({ takes, typed }: Completion): readonly string[] {
  if (takes.kind !== 'words') return [takes.kind === 'names' ? takes.of : takes.kind];
  return takes.candidates.flatMap(({ word }) => (word.startsWith(typed) ? [word] : []));
}

/** Lines behind `tke-eni `, and what may stand at their end. */
const LINES: readonly (readonly [line: string, offered: readonly string[]])[] = [
  ['vers', ['version']],
  ['help vers', ['version']],
  ['nonsense ', []],
  ['version ', []],
  ['completion ', ['bash', 'zsh', 'fish']],
  ['--color never completion f', ['fish']],
  ['routes --pod', ['--pod=']],
  ['routes --pod ', ['pod']],
  ['routes --table=ma', ['table']],
  ['routes -o y', ['yaml']],
  ['routes -o=y', ['yaml']],
  ['--netns ', ['netns']],
  ['status --state-dir=/r', ['folder']],
  ['status --kubeconfig ', ['file']],
  ['--version=', []],
  ['--no-such=', []],
  ['--no-such ver', ['version']],
  ['routes -- --ta', []],
];

for (const [line, offered] of LINES) {
  test(`findCompletion: offers ${JSON.stringify(offered)} at the end of «tke-eni ${line}»`, (t) => {
    t.deepEqual(wordsOf(find(line)), offered);
  });
}

test('findCompletion: options are those of the command and those of all, each once, with what it does', (t) => {
  const { takes } = find('routes -');
  const candidates = takes.kind === 'words' ? takes.candidates : [];
  const words = candidates.map(({ word }) => word);
  for (const word of ['--table=', '--netns=', '--owners', '--help']) t.true(words.includes(word), word);
  t.is(new Set(words).size, words.length);
  t.true(candidates.every(({ help }) => help !== undefined));
});

test('findCompletion: the places that the line names go to whoever looks names up', (t) => {
  const line = '--netns a --state-dir=/b=c routes --host-root /d --socket /e --table 4';
  t.deepEqual(find(line).places, ['--netns=a', '--state-dir=/b=c', '--host-root=/d']);
});

test('findCompletion: answers every line', async (t) => {
  const known = [
    'routes',
    'help',
    '--',
    '-o',
    '--netns',
    '--output=',
    '',
    '-',
    '--table=x',
    'constructor',
    '--__proto__=',
  ];
  await assertLaw(t, () =>
    fc.property(
      fc.array(fc.oneof(fc.constantFrom(...known), fc.string())),
      (words) => typeof findCompletion(words, ALL_COMMANDS).typed === 'string',
    ),
  );
});
