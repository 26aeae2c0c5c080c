import { renderPort } from '../../dataplane/bridge-port.ts';
import type { HostState } from '../../dataplane/desired.ts';
import { type Operation, renderAddress } from '../../dataplane/operation.ts';
import type { FindingId } from '../catalogue/catalogue.ts';
import { linkId } from '../catalogue/element-id.ts';
import type { ObjectNames } from '../model/build-names.ts';
import type { OperationFinding } from './difference.ts';

/** Describes an operation on the bridge of GlobalRoute Pods, or on the flags of a port of it; undefined for one on anything else. */
export function describeBridge(
  operation: Operation,
  { links }: Pick<HostState, 'links'>,
  names: ObjectNames,
): readonly OperationFinding[] | undefined {
  const bridges = new Set(links.filter(({ kind }) => kind === 'bridge').map(({ ifindex }) => ifindex));
  const entry = (id: FindingId, ifindex: number, what: string): readonly OperationFinding[] => [
    { id, owner: names.ofIfindex(ifindex), what, subject: linkId(ifindex) },
  ];
  switch (operation.kind) {
    case 'make-bridge': {
      const { ifindex, ifname } = operation.bridge;
      return entry('bridge-missing', ifindex, `the bridge ${ifname} is missing`);
    }
    case 'set-port': {
      const { hairpin: _, ...others } = operation.before;
      // Without hairpin the Pod alone is concerned, and by a Service alone.
      const severity = Object.keys(others).length === 0 ? ('warning' as const) : 'error';
      const what = `${operation.ifname} has ${renderPort(operation.before)}`;
      return entry('bridge-port-changed', operation.ifindex, what).map((found) => ({ ...found, severity }));
    }
    case 'add-address':
    case 'delete-address': {
      const { ifindex, ifname, prefix } = operation.address;
      if (!bridges.has(ifindex)) return undefined;
      const what =
        operation.kind === 'add-address'
          ? describeAddress(operation, 'bridge-changed').what
          : `${ifname} has ${prefix}, of a block that no Pod lives in any more`;
      return entry('bridge-changed', ifindex, what);
    }
    case 'set-link':
      return bridges.has(operation.ifindex) ? describeBridgeLink(operation, names) : undefined;
    default:
      return undefined;
  }
}

/** What a bridge forwards nothing without; the rest concerns some packets, or shows in their marks. */
const STOPPING = ['up', 'arp', 'master'];

function describeBridgeLink(
  { ifindex, ifname, change, before }: Extract<Operation, { kind: 'set-link' }>,
  names: ObjectNames,
): readonly OperationFinding[] {
  const values = new Map(Object.entries(before));
  return Object.entries(change).map(([name, value]) => ({
    id: name === 'mtu' ? 'mtu-mismatch' : 'bridge-changed',
    owner: names.ofIfindex(ifindex),
    what: `${ifname}: ${name} is ${values.get(name)}, should be ${value}`,
    subject: linkId(ifindex),
    ...(!STOPPING.includes(name) && { severity: 'warning' as const }),
  }));
}

/** Describes an address that is missing, by the finding `missing`, or that has an attribute of no plan. */
export function describeAddress(
  { address, before }: Operation & { readonly kind: 'add-address' },
  missing: FindingId,
): { readonly id: FindingId; readonly what: string } {
  const { ifname, prefix } = address;
  if (before === undefined) return { id: missing, what: `${ifname} does not have its address ${prefix}` };
  const what = `address is "${renderAddress(before)}", should be "${renderAddress(address)}"`;
  return { id: 'attribute-changed', what };
}
