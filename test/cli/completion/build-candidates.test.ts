import test from 'ava';
import fc from 'fast-check';
import { safeCandidates } from '../../../cli/completion/read-candidates.ts';
import { assertLaw } from '../../support/law.ts';

test('safeCandidates: offers each word once, sorted, and none that a shell would expand, split or take for an option', (t) => {
  const bad = ['$(reboot)', '`x`', 'a b', "a'b", 'a;b', '-rf', '~root', 'a*', '', 'a\nb', '{a,b}', '!1'];
  t.deepEqual(safeCandidates(['default/web-1', ...bad, 'main', 'fd00::1', 'main', 'eni-12ab']), [
    ...['default/web-1', 'eni-12ab', 'fd00::1', 'main'],
  ]);
});

test('safeCandidates: lets through letters, digits and _./:@+- alone', async (t) => {
  await assertLaw(t, () =>
    fc.property(fc.array(fc.string({ unit: 'binary' })), (words) =>
      safeCandidates(words).every((word) => /^[\w./:@+-]+$/.test(word) && !word.startsWith('-')),
    ),
  );
});
