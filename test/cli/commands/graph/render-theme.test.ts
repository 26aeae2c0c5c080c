import test from 'ava';
import { renderThemed } from '../../../../cli/commands/graph/render-theme.ts';

/** Text colours on all that they are written on. */
const GROUNDS = ['ground', 'band', 'grid', 'card', 'pod', 'veth', 'mark', 'rule', 'table', 'eni', 'foreign'];
const PAIRS = Object.entries({
  ink: [...GROUNDS, 'bad-ground', 'warn-ground', 'find'],
  muted: [...GROUNDS, 'bad-ground', 'warn-ground'],
  bad: ['ground', 'band', 'bad-ground'],
  warn: ['ground', 'band', 'warn-ground'],
}).flatMap(([ink, grounds]) => grounds.map((ground) => [ink, ground] as const));

/** @see WCAG 2.2, relative luminance */
function luminance(colour: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
  const [r = 0, g = 0, b = 0] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

test('renderThemed: text is readable on every ground, light and dark', (t) => {
  for (const [ink, ground] of PAIRS) {
    const colours = renderThemed(`x{color:var(--${ink});background:var(--${ground})}`).match(/#[0-9a-f]{6}/g) ?? [];
    t.is(colours.length, 4);
    for (const at of [0, 2]) {
      const found = contrast(colours[at] ?? '', colours[at + 1] ?? '');
      t.true(found >= 4.5, `${ink} on ${ground}, ${at === 0 ? 'light' : 'dark'}: ${found.toFixed(2)}`);
    }
  }
});

test('renderThemed: dark is for screens alone, and a colour that there is not is refused', (t) => {
  t.regex(
    renderThemed('x{color:var(--ink)}'),
    /^x\{color:#[0-9a-f]{6}\}\n@media screen and \(prefers-color-scheme: dark\) \{\nx\{color:#[0-9a-f]{6}\}\}\n$/,
  );
  t.throws(() => renderThemed('x{color:var(--nothing)}'), { message: /colour nothing/ });
});
