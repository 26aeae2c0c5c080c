import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { TlsPair } from './tls-files.ts';

/**
 * Decides which clients of a TLS server are answered, after the TLS handshake has checked that their certificate is of
 * the server's client authorities.
 */
export class ClientAdmission {
  readonly #allowedNames: ReadonlySet<string>;
  /** Connections of the present authorities whose name was checked. */
  #admitted = new WeakSet<Socket>();
  /** Connections of earlier authorities. */
  readonly #outdated = new WeakSet<Socket>();
  readonly #open = new Set<Socket>();

  /** @param allowedNames common names of certificates; empty: every certificate of the authorities */
  constructor(allowedNames: readonly string[]) {
    this.#allowedNames = new Set(allowedNames);
  }

  /**
   * Follows the connections of a server that was made with `first`. The returned object takes other certificates for
   * new connections. Existing connections continue; with other client authorities they end, after the request that
   * runs.
   */
  follow(server: Server, first: TlsPair): { setSecureContext(pair: TlsPair): void } {
    let { ca } = first;
    server.on('secureConnection', (socket) => {
      this.#open.add(socket);
      socket.once('close', () => this.#open.delete(socket));
    });
    return {
      setSecureContext: (next) => {
        const isOtherAuthority = next.ca !== ca;
        ca = next.ca;
        server.setSecureContext(next);
        if (!isOtherAuthority) return;
        for (const socket of this.#open) this.#outdated.add(socket);
        this.#admitted = new WeakSet();
        server.closeIdleConnections();
      },
    };
  }

  /** Returns undefined when the client of a connection is answered, else the reason why not. */
  refusal(socket: Socket): string | undefined {
    if (this.#allowedNames.size === 0 || this.#admitted.has(socket)) return undefined;
    const name = commonNameOf(socket);
    if (name !== undefined && this.#allowedNames.has(name)) {
      this.#admitted.add(socket);
      return undefined;
    }
    const got = name === undefined ? 'no single common name' : JSON.stringify(name.slice(0, MAX_CHARS));
    return `the client certificate has ${got}, which --client-allowed-names does not list`;
  }

  /** Tells whether a connection was made under earlier authorities: an answer on it says `connection: close`. */
  isOutdated(socket: Socket): boolean {
    return this.#outdated.has(socket);
  }
}

const MAX_CHARS = 80;

/** The common name of the client certificate; undefined where there is none or more than one. */
function commonNameOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  // The type says one text; a subject with several common names has a list.
  const name: unknown = socket.getPeerCertificate().subject?.CN;
  return typeof name === 'string' ? name : undefined;
}
