import test from 'ava';
import { checkWords, findPathsForStops, findPhrases } from '../../tools/check-words.ts';

const finds = test.macro((t, text: string, wanted: readonly RegExp[], path: string = 'agent/pool.ts') => {
  const found = checkWords(path, text);
  t.is(found.length, wanted.length, found.join('\n'));
  for (const [index, pattern] of wanted.entries()) t.regex(found[index] ?? '', pattern);
});

test('checkWords: accepts the words of the field', finds, 'const index = observeNode(snapshot);\n// the cache\n', []);
test('checkWords: finds a word in an identifier, whatever its case', finds, 'x;\nclass LeaseBook {}\nMEND_MS;', [
  /^2: book in LeaseBook; write cache/,
  /^3: mend in MEND_MS; write repair/,
]);
test('checkWords: finds its other forms', finds, 'wishes; judged; waking;', [/wish in/, /judge in/, /wake in/]);
test(
  'checkWords: finds a word in the name of a file',
  finds,
  'x;',
  [/^1: ledger in the-ledger.ts/],
  'agent/the-ledger.ts',
);
test('checkWords: finds constants that name a limit by another word', finds, 'MOST_ADDS; LEAST_MS;', [
  /^1: MOST_ in MOST_ADDS; write MAX_/,
  /^1: LEAST_ in LEAST_MS; write MIN_/,
]);
test('checkWords: finds persons in a comment', finds, 'x;\n/**\n * Nothing, nobody.\n */', [/^3: nobody in a comment/]);
test('checkWords: leaves texts alone, which may be public', finds, "say('told in a text', `by nobody`);", []);
test('checkWords: takes no word for a part of another', finds, 'bookmark; mushroom; recommend; // already', []);

test('findPathsForStops: finds a path, or two full stops, where a comment has a full stop', (t) => {
  const [path, stops, far, near] = ['../direct', '..', '../../sim/kube-api', './cluster'];
  const text = `x;\n/** Until \`waitMs\`${path} Then one more. */\n// as \`flush\`${stops}\n// \`root\`${far}\n/** Until \`close\`${near} */\n`;
  t.deepEqual(
    findPathsForStops(text).map((line) => line.slice(0, line.indexOf(' after'))),
    ['2: ../direct', '3: ..', '4: ../../sim/kube-api', '5: ./cluster'],
  );
});
test('findPathsForStops: leaves imports, ranges and ellipses alone', (t) => {
  const text =
    "import x from '../direct/x.ts';\n// `1`..`3`, see '../direct/x.ts'; `explain [OPTION]...`\nnew URL('..', here); // `./configure --all`, or './run x'\n";
  t.deepEqual(findPathsForStops(text), []);
});

test('findPhrases: finds a phrase in a comment, a text or a document, and leaves joined names alone', (t) => {
  const [again, always] = ['a new', 'For e ver'].map((phrase) => phrase.replace(/ (?=new|ver)/, ''));
  t.deepEqual(findPhrases(`x;\n// begins ${again}\nsay('${always}'); 'made-${again}'; forever();`), [
    `2: ${again}; write again`,
    `3: ${always}; write forever`,
  ]);
});
