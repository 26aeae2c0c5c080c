import { familyOfMessage } from '../../../dataplane/address-family.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { tableId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { isOurRule } from '../../../inspection/node/build-owner-index.ts';
import { NODE_TABLE_NAMES } from '../../../inspection/node/merge-table-names.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { RT_TABLE_LOCAL } from '../../../netlink/uapi/rtnetlink.ts';
import { type Check, done } from './check.ts';

/** Checks rules of other programs: above ours, at our priorities, into our tables. */
export const RULES_CHECK: Check = {
  id: 'rules',
  scope: 'other programs’ routing rules: above ours, at our priorities, into our tables',
  finds: ['foreign-rule-above-ours', 'foreign-rule-priority', 'foreign-rule-to-our-table', 'rule-missing'],
  evaluate: ({ model, node }) => {
    const { families } = model;
    const foreign = node.host.rules.filter((rule) => !isOurRule(rule));
    const local = [...families].flatMap((family) => localMissing(node, family));
    return done(local, [`${node.host.rules.length} rules, ${foreign.length} of them other programs’ and the kernel’s`]);
  },
};

/** Finds that no rule leads to table local: then the node takes no packet that is for itself. */
function localMissing({ host }: NodeFacts, family: 4 | 6): readonly Finding[] {
  const isThere = host.rules.some(
    (rule) =>
      familyOfMessage(rule) === family &&
      rule.table === RT_TABLE_LOCAL &&
      [rule.src, rule.dst, rule.iifname, rule.oifname, rule.fwmark].every((selector) => selector === undefined),
  );
  if (isThere || host.rules.length === 0) return [];
  const ip = family === 4 ? 'ip' : 'ip -6';
  return [
    finding('rule-missing', {
      what: `there is no IPv${family} rule that leads to table local: the node takes no packet that is for itself, as from Pods to its services`,
      fix: [`${ip} rule add pref 0 from all lookup local`],
      subjects: [tableId(RT_TABLE_LOCAL)],
      isOurs: false,
    }),
  ];
}

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
