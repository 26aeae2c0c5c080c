import test from 'ava';
import { OPTIONS, type Option } from '../../../agent/config/options.ts';
import { META_FLAGS, renderConfigDoc, renderHelp, variableOf } from '../../../agent/config/render-options.ts';

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
