import { isIPv4 } from 'node:net';
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
