import test from 'ava';
import { evaluate } from '../../../sim/kube-api/cel/evaluate.ts';
import { CelError } from '../../../sim/kube-api/cel/lex.ts';
import { parseCel } from '../../../sim/kube-api/cel/parse.ts';
import { ruleFaults } from '../../../sim/kube-api/cel/rules.ts';

const SELF = { a: 1, b: 2, name: 'x-1', list: [1, 2, 3], map: { k: 'v' }, items: [{ id: 'p' }, { id: 'q' }] };

const holds = test.macro((t, source: string, want: unknown) =>
  t.deepEqual(evaluate(parseCel(source), { self: SELF }), want),
);

for (const [source, want] of Object.entries({
  'self.a <= self.b': true,
  '!has(self.c) || self.c > 1': true,
  'has(self.a) && self.a == 1': true,
  'self.a + self.b * 2 == 5': true,
  '(self.a + self.b) * 2 == 6': true,
  '-self.a < 0': true,
  '7 / 2 == 3': true,
  '7 % 4 == 3': true,
  'self.list.all(x, x > 0)': true,
  'self.list.exists(x, x == 4)': false,
  'self.list.exists_one(x, x == 2)': true,
  'self.list.filter(x, x > 1).size() == 2': true,
  'self.items.map(x, x.id) == ["p", "q"]': true,
  'size(self.list) == 3': true,
  '2 in self.list': true,
  "'k' in self.map": true,
  "self.map['k'] == 'v'": true,
  'self.list[2] == 3': true,
  "self.name.startsWith('x') && self.name.matches('^x-[0-9]$')": true,
  "self.name + '!' == 'x-1!'": true,
  'self.a > 5 ? false : true': true,
  "{'a': 1, 'b': [self.b]}['b'] == [2]": true,
  "'a' in {}": false,
  "dyn({'a': self.a}).a == 1": true,
  "['a', 'b'].join(', ')": 'a, b',
  // Either side decides, whatever becomes of the other.
  'self.absent == 1 || true': true,
  'self.absent == 1 && false': false,
})) {
  test(`evaluate: ${source}`, holds, source, want);
}

const fails = test.macro((t, source: string) => {
  t.throws(() => evaluate(parseCel(source), { self: SELF }), { instanceOf: CelError });
});

for (const source of [
  'self.absent',
  'nobody',
  'self.a +',
  'self.a ? 1',
  '1 / 0',
  "'a' < 1",
  'self..a',
  '#',
  'frobnicate(1)',
  'self.list[3]',
]) {
  test(`evaluate: has no value for ${source}`, fails, source);
}

const SCHEMA = {
  type: 'object',
  properties: {
    n: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self >= oldSelf', message: 'shrinks' }] },
    set: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['id'],
      items: { type: 'object', 'x-kubernetes-validations': [{ rule: 'self.v == oldSelf.v', message: 'changes' }] },
    },
  },
};

test('ruleFaults: compares with what was there, item by item where the list has keys', (t) => {
  const old = {
    n: 2,
    set: [
      { id: 'a', v: 1 },
      { id: 'b', v: 1 },
    ],
  };
  const messages = (value: unknown) =>
    ruleFaults(value, old, SCHEMA, '').map((fault) => `${fault.field} ${fault.message}`);
  t.deepEqual(
    messages({
      n: 3,
      set: [
        { id: 'b', v: 1 },
        { id: 'c', v: 9 },
      ],
    }),
    [],
  );
  t.deepEqual(messages({ n: 1, set: [{ id: 'b', v: 2 }] }), [
    'n Invalid value: 1: shrinks',
    'set[0] Invalid value: changes',
  ]);
  t.deepEqual(ruleFaults({ n: 1 }, undefined, SCHEMA, ''), []);
});
