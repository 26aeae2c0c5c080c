import test from 'ava';
import { renderExplanation } from '../../../../cli/commands/explain/render-explanation.ts';
import { textWidth } from '../../../../cli/output/cell-text.ts';
import type { Explanation } from '../../../../inspection/explain/explanation.ts';
import { matchesGolden } from '../../../support/golden.ts';
import { SAMPLE } from './explanation-sample.ts';

for (const width of [80, 160]) {
  test(`renderExplanation: is as in the golden file at ${width} columns`, (t) => {
    const text = renderExplanation(SAMPLE, { width, isColored: false });
    matchesGolden(t, import.meta.url, `explain-${width}.txt`, text);
  });
}

test('renderExplanation: stays within the width but for cures, which are for pasting', (t) => {
  const cures = SAMPLE.findings.flatMap(({ fix }) => fix);
  const wide = renderExplanation(SAMPLE, { width: 60, isColored: false })
    .split('\n')
    .filter((line) => textWidth(line) > 60 && !cures.some((cure) => line.endsWith(cure)));
  t.deepEqual(wide, []);
});

test('renderExplanation: colours change nothing but colours, and the broken hop is red', (t) => {
  const colored = renderExplanation(SAMPLE, { width: 160, isColored: true });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character begins each sequence.
  matchesGolden(t, import.meta.url, 'explain-160.txt', colored.replace(/\u001b\[\d+m/g, ''));
  t.true(colored.includes('\u001b[31mBROKEN\u001b[39m'));
  t.true(colored.includes('\u001b[31m32766: from all lookup main\u001b[39m'));
});

test('renderExplanation: ends with what the paths add up to', (t) => {
  const last = (explanation: Explanation) =>
    renderExplanation(explanation, { width: 160, isColored: false }).trimEnd().split('\n').at(-1) ?? '';
  const [broken, warned] = SAMPLE.paths;
  const whole = (warned?.hops ?? []).filter(({ verdict }) => verdict === 'warning');
  t.regex(last(SAMPLE), /^1 of 2 packets do not arrive: there is no IPv4 rule .* \(rule-missing\)$/);
  t.regex(last({ ...SAMPLE, paths: broken === undefined ? [] : [broken] }), /^The packet does not arrive: /);
  t.is(
    last({ ...SAMPLE, paths: warned === undefined ? [] : [warned] }),
    'No broken hop was found; 1 warning; 1 hop could not be looked at',
  );
  t.is(
    last({ ...SAMPLE, paths: warned === undefined ? [] : [{ ...warned, hops: whole }] }),
    'Every hop is in order: the packets arrive; 1 warning',
  );
});

test('renderExplanation: lets no control character of a name through', (t) => {
  const [path] = SAMPLE.paths;
  const evil = { ...SAMPLE, subject: 'Pod \u001b[2Jx', paths: path === undefined ? [] : [{ ...path, to: 'a\nb' }] };
  const text = renderExplanation(evil, { width: 80, isColored: false });
  t.false(text.includes('\u001b'));
  t.true(text.includes('-> a\\x0ab\n'));
});
