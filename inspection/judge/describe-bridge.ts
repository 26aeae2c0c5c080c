import { renderPort } from '../../dataplane/bridge-port.ts';
import type { HostState } from '../../dataplane/desired.ts';
import { type Operation, renderAddress } from '../../dataplane/operation.ts';
import type { FindingId } from '../catalogue/catalogue.ts';
import { linkId } from '../catalogue/element-id.ts';
import type { ObjectNames } from '../model/build-names.ts';
import type { OperationFinding } from './difference.ts';

/** Describes an operation on the bridge of GlobalRoute Pods or on a port of it; undefined for one on anything else. */
export function describeBridge(
  operation: Operation,
  { links }: Pick<HostState, 'links'>,
  names: ObjectNames,
): readonly OperationFinding[] | undefined {
  const bridges = new Map(
    links.filter(({ kind }) => kind === 'bridge').map(({ ifindex, ifname }) => [ifindex, ifname]),
  );
  const entry = (id: FindingId, ifindex: number, what: string): readonly OperationFinding[] => [
    { id, owner: names.ofIfindex(ifindex), what, subject: linkId(ifindex) },
  ];
  switch (operation.kind) {
    case 'make-bridge': {
      const { ifindex, ifname } = operation.bridge;
      return entry('bridge-missing', ifindex, `the bridge ${ifname} is missing`);
    }
    case 'set-port':
      return entry('bridge-port-changed', operation.ifindex, `${operation.ifname} has ${renderPort(operation.before)}`);
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
    case 'set-link': {
      const { ifindex, ifname, change, before } = operation;
      if (bridges.has(ifindex)) return entry('bridge-changed', ifindex, describeChange(operation));
      const bridge = bridges.get(change.master ?? 0);
      if (bridge === undefined) return undefined;
      const where = before.master === 0 ? 'no bridge' : `ifindex ${before.master}`;
      return entry('bridge-port-changed', ifindex, `${ifname} is in ${where}, should be in ${bridge}`);
    }
    default:
      return undefined;
  }
}

function describeChange({ ifname, change, before }: Extract<Operation, { kind: 'set-link' }>): string {
  const values = new Map(Object.entries(before));
  const shown = Object.entries(change).map(([name, value]) => `${name} is ${values.get(name)}, should be ${value}`);
  return `${ifname}: ${shown.join('; ')}`;
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
