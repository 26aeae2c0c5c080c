import {
  isOurTable,
  RTPROT_TKE_ENI,
  TABLE_CONNECTED,
  TABLE_MAIN,
  TABLE_POD_ROUTES,
} from '../../../dataplane/numbers.ts';
import { tableId } from '../../../inspection/catalogue/element-id.ts';
import { renderRoute } from '../../../netlink/render-route.ts';
import type { RouteMessage } from '../../../netlink/route-message.ts';
import { AF_INET6 } from '../../../netlink/uapi/netlink.ts';
import { RT_TABLE_DEFAULT, RT_TABLE_LOCAL, RTN_LOCAL, RTN_MULTICAST } from '../../../netlink/uapi/rtnetlink.ts';
import { plural } from '../../output/plural.ts';
import { type GraphNode, NODE_GROUP } from './graph.ts';

/** Number of routes that a box shows; of the rest only the number is shown. */
const SHOWN_ROUTES = 4;

/** Number of routes in the details of a box. */
const LISTED_ROUTES = 300;

/** Input for the boxes of tables. */
type TableInput = {
  readonly routes: readonly RouteMessage[];
  readonly tableNames: ReadonlyMap<number, string>;
  readonly nameOf: (ifindex: number) => string;
  /** Tables that are drawn even if they are empty: those of ENIs, and those that rules look up. */
  readonly tables: readonly number[];
  readonly groupOf: (table: number) => string | undefined;
  /** Reports whether a link is a Pod's veth. */
  readonly isPodLink: (ifindex: number) => boolean;
};

/**
 * Builds the boxes of the routing tables: Pod routes first, then main, those of ENIs, those of other programs, local.
 */
export function buildTableBoxes(input: TableInput): readonly GraphNode[] {
  const byTable = Map.groupBy(input.routes, ({ table }) => table);
  const tables = [...new Set([...input.tables, ...byTable.keys()])].sort((a, b) => rank(a) - rank(b) || a - b);
  return tables.map((table) => tableBox(table, byTable.get(table) ?? [], input));
}

/** Formats a route as a line for people: without the command, the table and the protocol of tke-eni. */
export function routeLine(route: RouteMessage, nameOf: (ifindex: number) => string): string {
  return renderRoute('add', route, nameOf)
    .replace(/^ip (-6 )?route add /, '')
    .replace(/ table \S+/, '')
    .replace(` proto ${RTPROT_TKE_ENI}`, '')
    .replace(/^default/, route.family === AF_INET6 ? 'default (IPv6)' : 'default')
    .replace(/ scope global/, '');
}

function tableBox(table: number, routes: readonly RouteMessage[], input: TableInput): GraphNode {
  const name = input.tableNames.get(table);
  const forPods = routes.filter((route) => isPodRoute(route, input));
  const others = routes
    .filter((route) => !isPodRoute(route, input))
    .sort((a, b) => Number(b.dst === undefined) - Number(a.dst === undefined));
  const rows = [...others, ...forPods].map((route) => routeLine(route, input.nameOf));
  return {
    id: tableId(table),
    kind: 'table',
    lane: 'tables',
    group: input.groupOf(table) ?? NODE_GROUP,
    title: name === undefined || name === String(table) ? `table ${table}` : `table ${table} ${name}`,
    lines: linesOf(table, routes, others, forPods.length, input),
    owner: isOurTable(table) ? 'ours' : isKernelTable(table) ? 'kernel' : 'foreign',
    state: 'ok',
    elements: [tableId(table)],
    facts: [
      {
        title: `${rows.length} routes`,
        rows:
          rows.length > LISTED_ROUTES
            ? [...rows.slice(0, LISTED_ROUTES), `… and ${rows.length - LISTED_ROUTES} more`]
            : rows,
      },
    ],
    findings: [],
  };
}

function linesOf(
  table: number,
  routes: readonly RouteMessage[],
  others: readonly RouteMessage[],
  podRoutes: number,
  input: TableInput,
): readonly string[] {
  if (routes.length === 0) return ['empty'];
  const toPods = podRoutes === 0 ? [] : [`${plural(podRoutes, 'route')} to Pods`];
  if (table === RT_TABLE_LOCAL) {
    const localAddresses = routes.filter(({ type }) => type === RTN_LOCAL).length;
    return [`${plural(localAddresses, 'address')} of this node`];
  }
  const relevant = others.filter((route) => route.type !== RTN_MULTICAST && !isLinkLocal(route));
  const shown = relevant.slice(0, SHOWN_ROUTES);
  const rest = relevant.length - shown.length;
  return [
    ...shown.map((route) => routeLine(route, input.nameOf).replace(/ (proto|scope|metric) \S+/g, '')),
    ...(rest > 0 ? [`${rest} more`] : []),
    ...toPods,
  ];
}

function isPodRoute(route: RouteMessage, input: TableInput): boolean {
  return (
    (route.table === TABLE_POD_ROUTES || route.table === TABLE_MAIN) &&
    route.dst !== undefined &&
    route.oif !== undefined &&
    !isLinkLocal(route) &&
    input.isPodLink(route.oif)
  );
}

/** Reports whether a route is to link-local or multicast addresses. Every link has such routes, so they are not shown. */
function isLinkLocal({ dst }: RouteMessage): boolean {
  return dst?.startsWith('fe80:') === true || dst?.startsWith('ff00:') === true;
}

function rank(table: number): number {
  if (table === TABLE_POD_ROUTES || table === TABLE_CONNECTED) return 0;
  if (table === TABLE_MAIN) return 1;
  return isKernelTable(table) ? 4 : isOurTable(table) ? 2 : 3;
}

function isKernelTable(table: number): boolean {
  return table === RT_TABLE_LOCAL || table === TABLE_MAIN || table === RT_TABLE_DEFAULT;
}
