import type { HostState } from './desired.ts';
import { flowtableReplaceCommands } from './fast-path/flowtable.ts';
import { isNftName } from './nft-table.ts';
import type { ObservedFlowtable, ObservedLink } from './observed.ts';
import type { Operation } from './operation.ts';

/**
 * So many devices more than planned are no difference. A deleted link leaves the flowtable by itself before kernel 6.16; since then
 * its name stays, for a link of the same name that may come. A Pod's link never comes again.
 */
const MAX_LEFT_DEVICES = 256;

/** What the comparison needs of the host. */
type ObservedFlowtableHost = {
  readonly links: readonly Pick<ObservedLink, 'ifindex' | 'ifname'>[];
  readonly nft: { readonly flowtable?: ObservedFlowtable };
};

/**
 * Returns what makes the flowtable as planned: its table is replaced when the rules are others, and devices that are missing are
 * added. Replacing ends all flows, adding a device none.
 */
export function flowtableOperations(
  { flowtable: planned }: Pick<HostState, 'flowtable'>,
  { links, nft: { flowtable: found } }: ObservedFlowtableHost,
  missing: ReadonlySet<number>,
): readonly Operation[] {
  if (planned === undefined) return [];
  const names = new Map(links.map(({ ifindex, ifname }) => [ifindex, ifname]));
  const devices = planned.devices
    .filter(({ ifindex }) => !missing.has(ifindex))
    // Renamed by another client: nft knows links by name, and one that is missing fails the whole transaction.
    .map(({ ifindex, ifname }) => names.get(ifindex) ?? ifname)
    .filter(isNftName);
  const wanted = new Set(devices);
  const left = (found?.devices ?? []).filter((device) => !wanted.has(device));
  if (found?.isCurrent !== true || left.length > MAX_LEFT_DEVICES) {
    const commands = flowtableReplaceCommands(planned.text, devices);
    return [{ kind: 'replace-flowtable', commands, ...(found && { before: found.restore }) }];
  }
  const present = new Set(found.devices);
  const lacking = devices.filter((device) => !present.has(device));
  return lacking.length === 0 ? [] : [{ kind: 'add-flow-devices', devices: lacking }];
}

/** Returns the deletion of the table when none is planned. */
export function flowtableDeletion(
  { flowtable: planned }: Pick<HostState, 'flowtable'>,
  { nft: { flowtable: found } }: Pick<ObservedFlowtableHost, 'nft'>,
): readonly Operation[] {
  return planned !== undefined || found === undefined ? [] : [{ kind: 'delete-flowtable', before: found.restore }];
}
