import { readFileSync } from 'node:fs';
import test from 'ava';
import { CATALOGUE } from '../../inspection/catalogue/catalogue.ts';
import { FOREIGN_FAULTS, HARMLESS, IPV6_FAULTS } from '../e2e/support/foreign-faults.ts';
import { GR_FAULTS } from '../e2e/support/gr-faults.ts';
import { NODE_FAULTS } from '../e2e/support/node-faults.ts';

const PAGE = readFileSync(new URL('../../docs/kernel-state.md', import.meta.url), 'utf8');

/** Rows of the tables by the heading above them: finding and name of the packet test. */
function rowsOf(heading: string): readonly (readonly [finding: string, fault: string])[] {
  const section = PAGE.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return [...section.matchAll(/^\| [^|]+ \| `([a-z-]+)` \| ([^|`]+) \|$/gm)].map(([, id = '', fault = '']) => [
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

const packetFault = ({ name, finds }: (typeof FOREIGN_FAULTS)[number]): PacketFault => ({
  ...{ name, id: finds, isRequired: true },
});

const grFault = ({ name, breaksPackets, finds }: (typeof GR_FAULTS)[number]): PacketFault => ({
  ...{ name, id: finds.doctor ?? '', isRequired: breaksPackets.compact },
});

const SECTIONS: readonly (readonly [heading: string, faults: readonly PacketFault[]])[] = [
  ['Planned and repaired', [...nodeFaults('mends'), ...IPV6_FAULTS.map(packetFault), ...GR_FAULTS.map(grFault)]],
  ['Reported by doctor and explain', [...nodeFaults('refuses'), ...FOREIGN_FAULTS.map(packetFault)]],
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

test('docs/kernel-state.md: a state without a packet test names another test that is there', (t) => {
  const section = PAGE.split('### Limits of the whole machine\n')[1]?.split('\n## ')[0] ?? '';
  const rows = [...section.matchAll(/^\| [^|]+ \| `([a-z-]+)` \| `(test\/[^`]+)`: ([^|]+) \|$/gm)];
  t.true(rows.length >= 3, 'the table is read');
  for (const [, id = '', path = '', title = ''] of rows) {
    t.true(id in CATALOGUE, `${id} is a finding`);
    t.true(
      readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8').includes(`test('${title}'`),
      `${path} has "${title}"`,
    );
  }
});

test('docs/kernel-state.md: what stops nothing is what was tried', (t) => {
  const section = PAGE.split('## Tried, and stops nothing\n')[1]?.split('\n## ')[0] ?? '';
  const names = [...section.matchAll(/^\| [^|]+ \| ([^|-]+[^|]*) \|$/gm)].map(([, name]) => name).slice(1);
  t.deepEqual(names.toSorted(), HARMLESS.map(({ name }) => name).toSorted());
});

test('docs/kernel-state.md: each table has three columns; settings have four, and what stops nothing has two', (t) => {
  for (const section of PAGE.split(/^###? /m)) {
    const expected = section.startsWith('Settings of') ? 4 : section.startsWith('Tried, and stops nothing') ? 2 : 3;
    for (const line of section.split('\n').filter((each) => each.startsWith('|'))) {
      t.is(line.split('|').length - 2, expected, line);
    }
  }
});
