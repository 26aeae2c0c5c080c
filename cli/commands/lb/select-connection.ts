import { isIPv4 } from 'node:net';
import { UserError } from '../../../runtime/user-error.ts';
import type { LbRow } from './build-lb-rows.ts';

/** Where a client connects to. */
export type Connection = { readonly address: string; readonly port: number | undefined };

const MAX_PORT = 65_535;

/** Reads `ADDRESS`, `ADDRESS:PORT`, or a domain in the place of the address; undefined for anything else. */
export function parseConnection(text: string): Connection | undefined {
  const [, address = '', port] = /^([0-9A-Za-z.-]{1,253}?)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const isName = address.includes('.') && !/^[\d.]+$/.test(address);
  if (!isIPv4(address) && !isName) return undefined;
  if (port !== undefined && (Number(port) < 1 || Number(port) > MAX_PORT)) return undefined;
  return { address, port: port === undefined ? undefined : Number(port) };
}

/** Selects the Services whose load balancer has the address, with the listeners of the port alone. */
export function selectConnection(rows: readonly LbRow[], { address, port }: Connection): readonly LbRow[] {
  return rows
    .filter(({ addresses }) => addresses.includes(address))
    .map((row) => ({
      ...row,
      listeners: row.listeners.filter((listener) => port === undefined || listener.port === port),
    }))
    .filter(({ listeners }) => port === undefined || listeners.length > 0);
}

/** A listener with the Service that it is for. */
export type ServiceListener = { readonly row: LbRow; readonly listener: LbRow['listeners'][number] };

/**
 * Finds the listeners that take a connection: one, or one for each protocol.
 * @throws UserError NOT_FOUND when no load balancer of a Service has the address, or when none listens at the port
 */
export function findListeners(rows: readonly LbRow[], connection: Connection): readonly ServiceListener[] {
  const { address, port } = connection;
  const there = selectConnection(rows, { address, port: undefined });
  if (there.length === 0) {
    const next = 'tke-eni lb lists the load balancers of Services; of an address of a Pod: without port';
    throw new UserError('NOT_FOUND', `no load balancer of a Service has ${address}`, next);
  }
  const found = selectConnection(there, connection).flatMap((row) =>
    row.listeners.map((listener) => ({ row, listener })),
  );
  if (found.length > 0) return found;
  const [{ service = '', loadBalancerId = '', state = 'none' } = {}] = there;
  const named = `${loadBalancerId} of Service ${service}`;
  const all = there.flatMap(({ listeners }) => listeners.map(({ protocol, port: its }) => `${protocol}/${its}`));
  const has =
    all.length > 0 ? `it listens at ${all.join(', ')}` : `it has no listener of the Service, its state is ${state}`;
  const next = `${has}; tke-eni lb ${service} shows more`;
  throw new UserError('NOT_FOUND', `${address} (${named}) does not listen at port ${port}`, next);
}
