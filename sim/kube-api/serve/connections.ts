import type { Socket } from 'node:net';

/** The open connections: what a partition cuts. */
export class Connections {
  readonly #sockets = new Set<Socket>();
  readonly #watches = new Set<() => void>();

  addSocket(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  addWatch(stop: () => void): () => void {
    this.#watches.add(stop);
    return () => this.#watches.delete(stop);
  }

  /** Ends every watch by breaking its connection. */
  disconnectWatches(): void {
    for (const stop of [...this.#watches]) stop();
  }

  /** Breaks every connection. */
  destroyAll(): void {
    for (const socket of [...this.#sockets]) socket.destroy();
  }
}
