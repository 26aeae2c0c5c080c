import test from 'ava';
import { renderScores } from '../../scheduler/api/render-scores.ts';
import { NameLists } from '../../scheduler/http/name-lists.ts';
import { NamesByKey } from '../../scheduler/index/names-by-key.ts';

const NAMES = Array.from({ length: 200 }, (_, index) => `10.0.0.${index}`);
const LIST = JSON.stringify(NAMES);

test('NameLists: parses as JSON.parse does, and gives a list that it knows as the same array', (t) => {
  const texts = [
    `{"Pod":{"a":1},"Nodes":null,"NodeNames":${LIST}}`,
    `{"Pod":{"b":2},"Nodes":null,"NodeNames":${LIST}}\n`,
    `{"NodeNames":${LIST},"Pod":{"items":[1]}}`,
    `{"Pod":{"NodeNames":${LIST}}}`,
    `{"Pod":${JSON.stringify(`"NodeNames":${LIST}}`)},"NodeNames":["n1"]}`,
    `{"Pod":"${'x'.repeat(10)}","NodeNames":${LIST.replace('10.0.0.7"', '10.0.0.x"')}}`,
    `{"NodeNames":${LIST},"NodeNames":["n2"]}`,
    `[{"NodeNames":${LIST}}]`,
    'null',
    '{}',
  ];
  for (const order of [texts, texts.toReversed()]) {
    const lists = new NameLists();
    for (const text of [...order, ...order])
      t.deepEqual(lists.parse(Buffer.from(text)), JSON.parse(text), text.slice(0, 80));
  }
  const lists = new NameLists();
  const namesIn = (text = '') => (lists.parse(Buffer.from(text)) as { readonly NodeNames: unknown }).NodeNames;
  t.is(namesIn(texts[0]), namesIn(texts[1]));
});

test('NameLists: throws for what is no JSON, also behind a list that it knows', (t) => {
  const lists = new NameLists();
  lists.parse(Buffer.from(`{"NodeNames":${LIST}}`));
  for (const text of [
    `{"Pod":{,"NodeNames":${LIST}}`,
    `{"Pod":"NodeNames":${LIST}}`,
    `{"NodeNames":${LIST}} x`,
    `{"NodeNames":${LIST}`,
  ])
    t.throws(() => lists.parse(Buffer.from(text)), { instanceOf: SyntaxError }, text.slice(0, 40));
});

test('renderScores: says each score, of a list that was rendered before too', (t) => {
  const names = ['n1', 'wörker "2"', 'n3'];
  for (const scores of [
    [0, 10, 7],
    [10, 0, 1],
    [3, 4, 5],
  ]) {
    const given = names.map((Host, index) => ({ Host, Score: scores[index] ?? 0 }));
    t.deepEqual(JSON.parse(renderScores(names, given).toString()), given);
  }
  t.deepEqual(JSON.parse(renderScores([], []).toString()), []);
});

test('NamesByKey: is a set for each key, whatever the order of changes', (t) => {
  const names = new NamesByKey();
  const model = new Map<string, Set<string>>();
  let seed = 7;
  for (let step = 0; step < 2_000; step++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    const [key, name] = [`k${seed % 3}`, `n${(seed >> 4) % 4}`];
    const known = model.get(key) ?? new Set();
    if ((seed >> 9) % 2 === 0) {
      names.add(key, name);
      known.add(name);
    } else {
      names.remove(key, name);
      known.delete(name);
    }
    model.set(key, known);
    t.deepEqual(new Set(names.get(key)), known);
    t.is(names.has(key), known.size > 0);
  }
});
