import { openLinkNames } from '../../netlink/link-names.ts';
import { withNetns } from '../../netlink/netns.ts';
import { openRtnetlink, openRtnetlinkIn } from '../../netlink/rtnetlink.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RT_TABLE_MAIN } from '../../netlink/uapi/rtnetlink.ts';
import type { CommandContext } from '../command.ts';
import { findTable } from '../node/merge-table-names.ts';
import { readIpNames } from '../node/read-ip-names.ts';
import { withNodeNetns } from '../node/with-node-netns.ts';
import { openIpNames } from './open-ip-names.ts';
import { RouteJsonWriter } from './route-json-writer.ts';

/** The options that the fast path supports. */
export type RoutesQuery = {
  readonly table: string | undefined;
  readonly family: '4' | '6' | undefined;
  readonly details: boolean;
};

/**
 * Prints routes as `ip -j route` does, straight from the kernel's messages: a fast path for programs and for large
 * tables. Reads neither journal nor nftables. Returns false, with nothing printed, when the table's name is not in the
 * host's files.
 * @throws CliError
 */
export function printRoutesJson(
  query: RoutesQuery,
  { global, stdout }: Pick<CommandContext, 'global' | 'stdout'>,
): boolean {
  const { hostRoot } = global;
  const table = tableOf(query.table, hostRoot);
  if (table === undefined && query.table !== undefined) return false;
  stdout.write(
    withNodeNetns(global, (netns) => {
      using rtnetlink = netns === undefined ? openRtnetlink() : openRtnetlinkIn(netns);
      // A table may use few of many interfaces, and only their names are needed: they are looked up one by one.
      using links = netns === undefined ? openLinkNames() : withNetns(netns, openLinkNames);
      const names = openIpNames(hostRoot, { get: links.nameOf });
      const view = { isDetailed: query.details, isOneTable: table !== undefined };
      const { family } = query;
      const families = [...(family === '6' ? [] : [AF_INET]), ...(family === '4' ? [] : [AF_INET6])];
      const writer = new RouteJsonWriter(names, view, table);
      for (const each of families) {
        const filter = { family: each, ...(table === undefined ? {} : { table }) };
        rtnetlink.route.listAs(filter, (message, start, end) => {
          // A kernel that lacks the requested family (`ipv6.disable=1`) returns the routes of all families.
          if (message.u8[start] === each) writer.add(message, start, end);
        });
      }
      return writer.end();
    }),
  );
  return true;
}

function tableOf(text: string | undefined, hostRoot: string): number | undefined {
  if (text === undefined) return undefined;
  if (text === 'main') return RT_TABLE_MAIN;
  return findTable(/^\d+$/.test(text) ? new Map() : readIpNames(hostRoot, 'rt_tables'), text);
}
