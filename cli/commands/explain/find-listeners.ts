import { UserError } from '../../../runtime/user-error.ts';
import type { LbRow } from '../lb/build-lb-rows.ts';
import { type Connection, selectConnection } from '../lb/select-connection.ts';

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
