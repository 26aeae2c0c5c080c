import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { textWidth } from '../../../cli/output/cell-text.ts';
import { type Column, renderTable } from '../../../cli/output/render-table.ts';
import { assertLaw } from '../../support/law.ts';

type Row = {
  readonly pod: string;
  readonly ip: string;
  readonly ms: number;
  readonly node: string;
  readonly why: string;
};

const COLUMNS: readonly Column<Row>[] = [
  { title: 'POD', text: ({ pod }) => pod },
  { title: 'IP', text: ({ ip }) => ip },
  {
    title: 'MS',
    text: ({ ms }) => String(ms),
    align: 'right',
    priority: 2,
    color: ({ ms }) => (ms > 100 ? 'red' : undefined),
  },
  { title: 'NODE', text: ({ node }) => node, priority: 1 },
  { title: 'WHY', text: ({ why }) => why },
];

const ROWS: readonly Row[] = [
  {
    pod: 'default/web-5d8f7c9b4-x2x9k',
    ip: '10.0.3.17',
    ms: 4,
    node: 'ip-10-0-3-2.guangzhou',
    why: 'a route of its table is missing, so its packets leave by the primary interface',
  },
  { pod: 'kube-system/dns', ip: 'fd00:10:3::11', ms: 1234, node: 'ip-10-0-3-2.guangzhou', why: '' },
  { pod: 'prod/东京', ip: '10.0.3.18', ms: 12, node: 'n', why: 'control \u001b[2J characters\nof others' },
];

const golden = (name: string): string => readFileSync(join(import.meta.dirname, 'golden', name), 'utf8');

for (const width of [80, 160]) {
  test(`renderTable: is as recorded at ${width} columns`, (t) => {
    t.is(renderTable(ROWS, COLUMNS, { width, isColored: false }), golden(`table-${width}.txt`));
  });
}

test('renderTable: drops and cuts nothing without a width', (t) => {
  const table = renderTable(ROWS, COLUMNS, { isColored: false });
  t.false(table.includes('…'));
  t.regex(table, /^POD +IP +MS +NODE +WHY\n/);
});

test('renderTable: drops the column of lowest priority first, and no column without one', (t) => {
  const titles = (width: number) => renderTable(ROWS, COLUMNS, { width, isColored: false }).split('\n')[0]?.split(/ +/);
  t.deepEqual(titles(190), ['POD', 'IP', 'MS', 'NODE', 'WHY']);
  t.deepEqual(titles(140), ['POD', 'IP', 'MS', 'WHY']);
  t.deepEqual(titles(40), ['POD', 'IP', 'WHY']);
});

test('renderTable: paints the text of a cell and not the blanks around it', (t) => {
  const table = renderTable(ROWS, COLUMNS, { isColored: true });
  t.true(table.includes(' \u001b[31m1234\u001b[39m '));
  t.is(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is removed.
    table.replace(/\u001b\[\d+m/g, ''),
    renderTable(ROWS, COLUMNS, { isColored: false }),
  );
});

test('renderTable: without rows prints the titles, and nothing without those', (t) => {
  t.is(renderTable([], COLUMNS, { isColored: false }), 'POD  IP  MS  NODE  WHY\n');
  t.is(renderTable([], COLUMNS, { isColored: false, hasTitles: false }), '');
});

test('renderTable: one line a row, none wider than asked for, whatever the texts', async (t) => {
  const row = fc.array(fc.string({ unit: 'binary' }), { minLength: 4, maxLength: 4 });
  const columns = [0, 1, 2, 3].map(
    (index): Column<readonly string[]> => ({
      title: `C${index}`,
      text: (cells) => cells[index] ?? '',
      ...(index > 1 ? { priority: index } : {}),
      align: index % 2 === 0 ? 'left' : 'right',
    }),
  );
  await assertLaw(t, () =>
    fc.property(fc.array(row, { maxLength: 5 }), fc.integer({ min: 20, max: 60 }), (rows, width) => {
      const lines = renderTable(rows, columns, { width, isColored: false }).split('\n');
      return lines.length === rows.length + 2 && lines.every((line) => textWidth(line) <= width);
    }),
  );
});
