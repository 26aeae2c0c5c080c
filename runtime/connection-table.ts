import type { Socket } from 'node:net';

/** One connection of a server. */
export type Connection = {
  readonly socket: Socket;
  /** The sender: see `originOf`. */
  readonly origin: string;
  /** The two ends of the connection, as a text. */
  readonly key: string;
};

/**
 * The open connections of a server, at most `max`. One more is not refused: another one is closed for it, so a client that
 * holds connections keeps no other client out. It is a connection of the sender that has most, and of those the one with the
 * longest silence; a connection whose answer is being worked out comes last.
 */
export class ConnectionTable {
  readonly #max: number;
  readonly #isWorking: (connection: Connection) => boolean;
  /** The connection with the longest silence first. */
  readonly #connections = new Map<string, Connection>();
  readonly #byOrigin = new Map<string, Set<Connection>>();

  /** @param isWorking tells whether the answer to a whole request of a connection is being worked out */
  constructor(max: number, isWorking: (connection: Connection) => boolean) {
    this.#max = max;
    this.#isWorking = isWorking;
  }

  /** The open connections, the one with the longest silence first. */
  get all(): Iterable<Connection> {
    return this.#connections.values();
  }

  /** Adds a connection that was accepted; closes another one when there are more than `max`. */
  add(socket: Socket): void {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      // The client has closed it already.
      socket.destroy();
      return;
    }
    const connection = { socket, origin: originOf(remoteAddress), key: keyOf(socket) };
    this.#append(connection);
    socket.once('close', () => this.#remove(connection));
    if (this.#connections.size > this.#max) this.#closeOne();
  }

  /** Returns the connection of a socket, or of the TLS socket on it; undefined when it is closed. */
  of(socket: Socket): Connection | undefined {
    return this.#connections.get(keyOf(socket));
  }

  /** Ends the silence of a connection: its client has sent a whole request. */
  touch(connection: Connection): void {
    if (this.#connections.get(connection.key) !== connection) return;
    this.#remove(connection);
    this.#append(connection);
  }

  /** Closes one connection at once. */
  close(connection: Connection): void {
    // The event `close` comes later; the place is free now.
    this.#remove(connection);
    connection.socket.destroy();
  }

  /** Closes all connections at once. */
  closeAll(): void {
    for (const connection of [...this.all]) this.close(connection);
  }

  #closeOne(): void {
    let largest = new Set<Connection>();
    for (const group of this.#byOrigin.values()) if (group.size > largest.size) largest = group;
    let victim: Connection | undefined;
    for (const connection of largest) {
      victim ??= connection;
      if (this.#isWorking(connection)) continue;
      victim = connection;
      break;
    }
    if (victim !== undefined) this.close(victim);
  }

  #append(connection: Connection): void {
    this.#connections.set(connection.key, connection);
    const group = this.#byOrigin.get(connection.origin) ?? new Set();
    this.#byOrigin.set(connection.origin, group.add(connection));
  }

  #remove(connection: Connection): void {
    if (this.#connections.get(connection.key) === connection) this.#connections.delete(connection.key);
    const group = this.#byOrigin.get(connection.origin);
    group?.delete(connection);
    if (group?.size === 0) this.#byOrigin.delete(connection.origin);
  }
}

/** A TLS socket has the addresses and ports of the socket below it. */
function keyOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

/**
 * Returns the sender of a connection: an IPv4 address, or the first 64 bits of an IPv6 address, of which one machine may use
 * all. The address is as Node.js writes it: `10.0.0.4`, `::ffff:10.0.0.4`, `2001:db8::4`, `fe80::1%eth0`.
 */
export function originOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address;
  const [head = '', tail = ''] = (address.split('%')[0] ?? '').split('::');
  const first = head === '' ? [] : head.split(':');
  const last = tail === '' ? [] : tail.split(':');
  const zeros = Array<string>(Math.max(0, 8 - first.length - last.length)).fill('0');
  return [...first, ...zeros, ...last].slice(0, 4).join(':');
}
