import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { tableId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { isOurRule } from '../../../inspection/node/build-owner-index.ts';
import { NODE_TABLE_NAMES } from '../../../inspection/node/merge-table-names.ts';
import { type Check, done } from './check.ts';

/** Checks rules of other programs: above ours, at our priorities, into our tables. */
export const RULES_CHECK: Check = {
  id: 'rules',
  scope: 'other programs’ routing rules: above ours, at our priorities, into our tables',
  finds: ['foreign-rule-above-ours', 'foreign-rule-priority', 'foreign-rule-to-our-table', 'rule-missing'],
  evaluate: ({ node }) => {
    const foreign = node.host.rules.filter((rule) => !isOurRule(rule));
    return done([], [`${node.host.rules.length} rules, ${foreign.length} of them other programs’ and the kernel’s`]);
  },
};

/**
 * Checks our routing tables: no routes of other programs are in them, and rt_tables has no other names for their
 * numbers.
 */
export const TABLES_CHECK: Check = {
  id: 'tables',
  scope: 'our routing tables hold our routes alone, no name is registered for their numbers',
  finds: ['table-collision', 'blackhole-route', 'table-name-taken'],
  evaluate: ({ model, node }) => {
    const { tables, enis } = model;
    const known = new Set([
      ...NODE_TABLE_NAMES.values(),
      ...enis.flatMap(({ eniId, ifname, table }) => [eniId ?? '', `eni-${ifname ?? table}`]),
    ]);
    const taken = [...node.host.tableNames].filter(([table, name]) => tables.has(table) && !known.has(name));
    return done(taken.map(nameTaken), [`ours: ${[...tables].join(', ')}`]);
  },
};

function nameTaken([table, name]: readonly [number, string]): Finding {
  return finding('table-name-taken', {
    what: `/etc/iproute2/rt_tables calls table ${table}, which is ours, ${name}`,
    fix: [`sed -i '/^${table}[[:space:]]/d' /etc/iproute2/rt_tables`],
    subjects: [tableId(table)],
  });
}
