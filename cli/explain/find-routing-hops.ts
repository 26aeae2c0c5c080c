import { TABLE_MAIN } from '../../dataplane/numbers.ts';
import { routeId, tableId } from '../node/element-id.ts';
import type { NetnsFacts } from '../node/node-facts.ts';
import { ruleElement } from '../node/rule-selector.ts';
import type { Hop } from './explanation.ts';
import { gravest, hopOf } from './find-hop.ts';
import { type Comparison, compareWithKernel } from './find-kernel-comparison.ts';
import { findRoute, type PassedRule, type Reading } from './find-route.ts';
import { findRoutingFault, type Leads } from './find-routing-fault.ts';
import type { Situation } from './find-situation.ts';
import { refusalText, routeText, ruleText } from './find-text.ts';
import type { Flow } from './flow.ts';

/** The rule and the route of one packet in the node's namespace. */
export type Routing = {
  readonly hops: readonly [rule: Hop, route: Hop];
  readonly reading: Reading;
  readonly taken: Comparison;
};

/**
 * Simulates which rule and route a packet gets, asks the kernel the same, and compares both with the expected route, if
 * there is one.
 */
export function findRouting(situation: Situation, flow: Flow, leads: Leads | undefined, refusedBy?: string): Routing {
  const { host } = situation.facts;
  const reading = findRoute(host, flow);
  const element = routeElement(reading, leads);
  const question = { ask: situation.ask, place: undefined, links: host.links, flow };
  const taken = compareWithKernel({ ...question, ...(refusedBy === undefined ? {} : { refusedBy }) }, reading, element);
  const fault =
    leads === undefined
      ? undefined
      : findRoutingFault({
          family: flow.family,
          reading,
          route: taken.route,
          oif: taken.oif,
          gateway: taken.gateway,
          leads,
          rules: host.rules,
          links: host.links,
        });
  const tableName = (table: number) => nameOf(host.tableNames, table);
  const rule = hopOf(
    {
      kind: 'rule',
      element: elementOfReading(reading, flow.family),
      title: reading.rule === undefined ? 'no rule leads anywhere' : `rule ${ruleText(reading.rule, tableName)}`,
      details: [flowText(flow, host), ...reading.passed.map((passed) => passedText(passed, host, tableName))],
    },
    fault?.place === 'rule' ? fault.finding : undefined,
  );
  const route = hopOf(
    { kind: 'route', element, title: routeTitle(reading, taken, host), details: taken.lines },
    gravest(fault?.place === 'route' ? fault.finding : undefined, taken.finding),
  );
  return { hops: [rule, route], reading, taken };
}

/** Formats a table as number and name. */
function nameOf(names: ReadonlyMap<number, string>, table: number): string {
  const name = names.get(table);
  return name === undefined ? String(table) : table < 256 ? name : `${table} (${name})`;
}

function elementOfReading({ rule }: Reading, family: 4 | 6): string {
  return rule === undefined ? `rule:${family}:none` : ruleElement(rule, family);
}

function routeElement(reading: Reading, leads: Leads | undefined): string {
  if (reading.route !== undefined) return routeId(reading.route.table, reading.route.dst ?? 'default');
  return tableId(reading.rule?.table ?? leads?.table ?? TABLE_MAIN);
}

function routeTitle(reading: Reading, { route }: Comparison, { links }: NetnsFacts): string {
  if (route !== undefined) return `route ${routeText(route, links)}`;
  if (reading.route !== undefined) return `route ${routeText(reading.route, links)}`;
  return reading.kind === 'refused' ? refusalText(reading.code) : 'no route';
}

function flowText({ dst, src, iif, mark }: Flow, { links }: NetnsFacts): string {
  const by =
    iif === undefined ? 'from the node itself' : `in by ${links.find(({ ifindex }) => ifindex === iif)?.ifname}`;
  return `packet: to ${dst}${src === undefined ? '' : ` from ${src}`}, ${by}, mark 0x${mark.toString(16)}`;
}

function passedText({ rule, why, route }: PassedRule, { links }: NetnsFacts, name: (table: number) => string): string {
  const texts = {
    empty: `nothing for it in table ${name(rule.table)}`,
    throw: `"${route === undefined ? '' : routeText(route, links)}" sends it on`,
    suppressed: `"${route === undefined ? '' : routeText(route, links)}" is suppressed`,
    goto: `jumps to ${rule.goto}`,
    nop: 'does nothing',
  };
  return `passed: rule ${ruleText(rule, name)}: ${texts[why]}`;
}
