import { addressKey, filterKey, neighKey, routeKey, ruleKey } from '../../dataplane/desired.ts';
import type { Operation } from '../../dataplane/operation.ts';
import { toAddress, toRoute, toRule } from '../../dataplane/to-state.ts';
import type { MonitorEvent } from '../../netlink/monitor.ts';
import { sysctlName } from '../../sysctl/sysctl-key.ts';

/** The table of ours as a whole: nftables notifies transactions, not what they change. */
const NFTABLES = 'nftables';
/** The table of the flowtable as a whole. */
const FLOWTABLE = 'flowtable';
/** Names of interfaces have no part in what identifies a route or an address. */
const NO_NAME = (): string => '';

/**
 * Names the kernel object that an operation changes. Equal for the operation and for notifications of the same object.
 * @param ifindexOf Index of a link by its name. The settings of a link that came back with another index are others.
 */
export function objectOf(operation: Operation, ifindexOf: (ifname: string) => number | undefined): string {
  switch (operation.kind) {
    case 'set-sysctl': {
      const { path } = operation.key;
      return `sysctl ${sysctlName(operation.key)} ${path[2] === 'conf' ? (ifindexOf(path[3] ?? '') ?? '') : ''}`;
    }
    case 'make-bridge':
    case 'delete-bridge':
      // Not the link: one pass makes it and sets it up, which counts as one repair of each.
      return `bridge ${operation.bridge.ifindex}`;
    case 'set-port':
      return `port ${operation.ifindex}`;
    case 'set-link':
      return `link ${operation.ifindex}`;
    case 'add-address':
    case 'delete-address':
      return `address ${addressKey(operation.address)}`;
    case 'replace-route':
    case 'delete-route':
      return `route ${routeKey(operation.route)}`;
    case 'add-rule':
    case 'delete-rule':
      return `rule ${ruleKey(operation.rule)}`;
    case 'replace-neigh':
    case 'delete-neigh':
      return `neigh ${neighKey(operation.neigh)}`;
    case 'attach-filter':
    case 'detach-filter':
      return `filter ${filterKey(operation.filter)}`;
    case 'load-nft':
      return NFTABLES;
    case 'replace-flowtable':
    case 'delete-flowtable':
      return FLOWTABLE;
    case 'add-flow-devices':
    case 'delete-flow-devices':
      // Others that take a device away have nothing to do with those that replace the table.
      return `${FLOWTABLE} ${operation.devices.join(' ')}`;
  }
}

/** Names what a notification of nftables may be about beside the table that `objectOfEvent` names. */
export const OTHER_NFTABLES: readonly string[] = [FLOWTABLE];

/** Names the object that a notification is about; undefined for one that names none of those that operations change. */
export function objectOfEvent(event: MonitorEvent): string | undefined {
  switch (event.kind) {
    case 'nftables':
      return NFTABLES;
    case 'link':
      return `link ${event.message.ifindex}`;
    case 'address':
      return `address ${addressKey(toAddress(event.message, NO_NAME))}`;
    case 'route':
      return `route ${routeKey(toRoute(event.message, NO_NAME))}`;
    case 'rule':
      return `rule ${ruleKey(toRule(event.message))}`;
    default:
      return undefined;
  }
}
