import type { LinkMessage } from '../../netlink/link-message.ts';
import { renderLookup, renderRoute } from '../../netlink/render-route.ts';
import { renderRule } from '../../netlink/render-rule.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage, RuleSpec } from '../../netlink/rule-message.ts';
import { linkName } from '../model/node-model.ts';
import type { RefusalCode } from './find-in-table.ts';
import { type Flow, queryOf } from './flow.ts';

/** Formats a route as `ip route` lists it, with its table. */
export function routeText(route: RouteMessage, links: readonly LinkMessage[]): string {
  return withoutCommand(renderRoute('add', route, (ifindex) => linkName(links, ifindex))).replace(' scope global', '');
}

/** Formats a rule as `ip rule` lists it: '1536: fwmark 0x10000/0xff0000 lookup 4003'. */
export function ruleText(rule: RuleMessage | RuleSpec, tableName: (table: number) => string = String): string {
  const { protocol: _protocol, ...rest } = rule;
  const selector = withoutCommand(renderRule('add', rest))
    .replace(/ ?pref \d+/, '')
    .replace(/lookup (\d+)$/, (_, table: string) => `lookup ${tableName(Number(table))}`);
  return `${rule.priority}: ${selector}`;
}

/** Formats the query to the kernel as an `ip route get` command. */
export function lookupText(flow: Flow, links: readonly LinkMessage[]): string {
  const { uid: _uid, ...query } = queryOf(flow, false);
  return renderLookup(query, (ifindex) => linkName(links, ifindex));
}

/** Describes what happens to a refused packet. */
export function refusalText(code: string): string {
  return (REFUSALS as Readonly<Record<string, string>>)[code] ?? code;
}

const REFUSALS = {
  ENETUNREACH: 'no route (network unreachable)',
  EHOSTUNREACH: 'unreachable (host unreachable)',
  EACCES: 'prohibited (administratively)',
  EINVAL: 'dropped without an answer (EINVAL)',
} as const satisfies Readonly<Record<RefusalCode, string>>;

function withoutCommand(line: string): string {
  return line.replace(/^ip (-6 )?(route|rule) add /, '');
}
