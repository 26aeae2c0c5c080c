import { readFileSync } from 'node:fs';
import test from 'ava';
import { CATALOGUE } from '../../cli/catalogue.ts';
import { FOREIGN_FAULTS } from '../e2e/support/foreign-faults.ts';
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

/** A fault that stops packets: the finding that doctor calls it by, and whether the page must have it. */
type PacketFault = { readonly name: string; readonly id: string; readonly isRequired: boolean };

const nodeFaults = (outcome: 'mends' | 'refuses'): readonly PacketFault[] =>
  NODE_FAULTS.filter(({ expects }) => expects.repair === outcome).map(({ name, breaksPackets, expects }) => ({
    ...{ name, id: expects.doctor, isRequired: breaksPackets },
  }));

const SECTIONS: readonly (readonly [heading: string, faults: readonly PacketFault[]])[] = [
  ['Planned and repaired', nodeFaults('mends')],
  [
    'Reported by doctor and explain',
    [...nodeFaults('refuses'), ...FOREIGN_FAULTS.map(({ name, finds }) => ({ name, id: finds, isRequired: true }))],
  ],
];

for (const [heading, faults] of SECTIONS) {
  test(`docs/kernel-state.md: "${heading}" has every fault that stops packets, with its finding`, (t) => {
    const rows = rowsOf(heading);
    t.true(rows.length > 10, 'the tables are read');
    for (const [id, name] of rows) {
      t.true(id in CATALOGUE, `${id} is a finding`);
      const fault = faults.find((each) => each.name === name);
      t.is(String(fault?.id), id, `"${name}" is a fault that doctor calls ${id}`);
    }
    const named = new Set(rows.map(([, name]) => name));
    const missing = faults.filter(({ isRequired, name }) => isRequired && !named.has(name));
    t.deepEqual(
      missing.map(({ name }) => name),
      [],
    );
  });
}
