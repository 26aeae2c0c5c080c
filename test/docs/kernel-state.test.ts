import { readFileSync } from 'node:fs';
import test from 'ava';
import { CATALOGUE } from '../../cli/catalogue.ts';
import { NODE_FAULTS } from '../e2e/support/node-faults.ts';

const PAGE = readFileSync(new URL('../../docs/kernel-state.md', import.meta.url), 'utf8');

/** Rows of the tables by the heading above them: finding and name of the packet test. */
function rowsOf(heading: string): readonly (readonly [finding: string, fault: string])[] {
  const section = PAGE.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return [...section.matchAll(/^\| [^|]+ \| `([a-z-]+)` \| ([^|]+) \|$/gm)].map(([, id = '', fault = '']) => [
    id,
    fault,
  ]);
}

const SECTIONS = [
  ['Planned and repaired', 'mends'],
  ['Reported by doctor and explain', 'refuses'],
] as const;

for (const [heading, outcome] of SECTIONS) {
  test(`docs/kernel-state.md: "${heading}" has every fault that stops packets, with its finding`, (t) => {
    const rows = rowsOf(heading);
    const faults = NODE_FAULTS.filter(({ expects }) => expects.repair === outcome);
    for (const [id, name] of rows) {
      t.true(id in CATALOGUE, `${id} is a finding`);
      const fault = faults.find((each) => each.name === name);
      t.is(String(fault?.expects.doctor), id, `"${name}" is a fault that doctor calls ${id}`);
    }
    const named = new Set(rows.map(([, name]) => name));
    const missing = faults.filter(({ breaksPackets, name }) => breaksPackets && !named.has(name));
    t.deepEqual(
      missing.map(({ name }) => name),
      [],
    );
  });
}
