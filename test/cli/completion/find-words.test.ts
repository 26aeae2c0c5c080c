import test from 'ava';
import fc from 'fast-check';
import { safeWords } from '../../../cli/completion/find-words.ts';
import { assertLaw } from '../../support/law.ts';

test('safeWords: offers each word once, sorted, and none that a shell would expand, split or take for an option', (t) => {
  const bad = ['$(reboot)', '`x`', 'a b', "a'b", 'a;b', '-rf', '~root', 'a*', '', 'a\nb', '{a,b}', '!1'];
  t.deepEqual(safeWords(['default/web-1', ...bad, 'main', 'fd00::1', 'main', 'eni-12ab']), [
    ...['default/web-1', 'eni-12ab', 'fd00::1', 'main'],
  ]);
});

test('safeWords: lets through letters, digits and _./:@+- alone', async (t) => {
  await assertLaw(t, () =>
    fc.property(fc.array(fc.string({ unit: 'binary' })), (words) =>
      safeWords(words).every((word) => /^[\w./:@+-]+$/.test(word) && !word.startsWith('-')),
    ),
  );
});
