import test from 'ava';
import { AGENT_PROGRAM } from '../../../agent/config/agent-config.ts';
import { OPTIONS } from '../../../agent/config/options.ts';
import { META_FLAGS, renderConfigDoc, renderHelp, variableOf } from '../../../runtime/settings/render-options.ts';

test('renderHelp: names every flag and fits 80 columns', (t) => {
  const help = renderHelp(AGENT_PROGRAM);
  for (const { flag } of [...Object.values(OPTIONS), ...META_FLAGS]) t.true(help.includes(`  --${flag}`), flag);
  t.deepEqual(
    help.split('\n').filter((line) => line.length > 80),
    [],
  );
});

test('renderConfigDoc: has one row for every setting', (t) => {
  const rows = renderConfigDoc(AGENT_PROGRAM)
    .split('\n')
    .filter((line) => line.startsWith('| `--'));
  t.is(rows.length, Object.keys(OPTIONS).length);
  for (const { flag } of Object.values(OPTIONS)) {
    t.is(rows.filter((row) => row.includes(`\`${variableOf(flag)}\``)).length, 1, flag);
  }
});
