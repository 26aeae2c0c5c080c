import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';

/** Returns the nodes whose object has an address with a mark. */
export type MarkedHolders = (ip: string) => readonly { readonly name: string; readonly status?: NodeEniConfigStatus }[];

/**
 * Finds where the Releasing addresses of a node are by now: Assigned, with a mark, on an attached ENI in another node's
 * object.
 */
export function findMoved(
  nodeName: string,
  status: NodeEniConfigStatus | undefined,
  holdersOf: MarkedHolders,
): ReadonlyMap<string, string> {
  const releasing = (status?.eniInfos ?? []).flatMap(({ addresses = [] }) =>
    addresses.flatMap(({ ip, state, claim }) => (claim !== undefined && state === 'Releasing' ? [ip] : [])),
  );
  return new Map(
    releasing.flatMap((ip) => {
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
