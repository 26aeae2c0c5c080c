import { readFileSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { OPTIONS, type Option } from '../../../agent/config/options.ts';
import { META_FLAGS, renderConfigDoc, renderHelp, variableOf } from '../../../agent/config/render-options.ts';

const DOC = new URL('../../../docs/agent-config.md', import.meta.url);

test('docs/agent-config.md: is what the table of settings renders', (t) => {
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(DOC, renderConfigDoc());
  t.is(readFileSync(DOC, 'utf8'), renderConfigDoc());
});

test('renderHelp: names every flag and fits 80 columns', (t) => {
  const help = renderHelp();
  for (const { flag } of [...Object.values<Option<unknown>>(OPTIONS), ...META_FLAGS])
    t.true(help.includes(`  --${flag}`), flag);
  t.deepEqual(
    help.split('\n').filter((line) => line.length > 80),
    [],
  );
});

test('renderConfigDoc: has one row for every setting', (t) => {
  const rows = renderConfigDoc()
    .split('\n')
    .filter((line) => line.startsWith('| `--'));
  t.is(rows.length, Object.keys(OPTIONS).length);
  for (const { flag } of Object.values<Option<unknown>>(OPTIONS)) {
    t.is(rows.filter((row) => row.includes(`\`${variableOf(flag)}\``)).length, 1, flag);
  }
});
