import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';

/** Nodes' objects that have an address with a mark, by address. */
export type MarkedHolders = (ip: string) => readonly { readonly name: string; readonly status?: NodeEniConfigStatus }[];

/**
 * Finds where the addresses that a node lets go of are by now: Assigned, with a mark, on an attached ENI in another
 * node's object. Pure.
 */
export function findMoved(
  nodeName: string,
  status: NodeEniConfigStatus | undefined,
  holdersOf: MarkedHolders,
): ReadonlyMap<string, string> {
  const going = (status?.eniInfos ?? []).flatMap(({ addresses = [] }) =>
    addresses.flatMap(({ ip, state, claim }) => (claim !== undefined && state === 'Releasing' ? [ip] : [])),
  );
  return new Map(
    going.flatMap((ip) => {
      const others = holdersOf(ip).filter(({ name }) => name !== nodeName);
      const there = others.flatMap((other) => eniOf(other.status, ip) ?? []);
      return there[0] === undefined ? [] : [[ip, there[0]] as const];
    }),
  );
}

function eniOf(status: NodeEniConfigStatus | undefined, ip: string): string | undefined {
  const eni = (status?.eniInfos ?? []).find(
    ({ state, addresses = [] }) =>
      state === 'Attached' &&
      addresses.some((one) => one.ip === ip && one.state === 'Assigned' && one.claim !== undefined),
  );
  return eni?.eniID;
}
