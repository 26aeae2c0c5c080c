import test from 'ava';
import { findUndocumented } from '../../tools/check-docstrings.ts';

const finds = test.macro((t, text: string, wanted: readonly string[]) => {
  t.deepEqual(findUndocumented(text), wanted);
});

test('findUndocumented: accepts a docstring', finds, '/** Opens. */\nexport function open() {}\n', []);
test('findUndocumented: names what has none', finds, 'const a = 1;\nexport type A = 1;\n', ['A:2']);
test('findUndocumented: a line comment is no docstring', finds, '// Opens.\nexport const open = 1;\n', ['open:2']);
test(
  'findUndocumented: overloads share the first docstring',
  finds,
  '/** Gets. */\nexport function get(a: 1): 1;\nexport function get(a: 2): 2;\n',
  [],
);
