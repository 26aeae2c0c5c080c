import { X509Certificate } from 'node:crypto';
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { TlsPair } from './tls-follower.ts';

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
  readonly #admitsPeers: boolean;
  /** Fingerprints of the certificates that the server uses: the present one, and the one before. */
  #own: readonly string[] = [];

  /**
   * @param allowedNames common names of certificates; empty: every certificate of the authorities
   * @param admitsPeers Whether clients are answered, too, that have the server's own certificate: other replicas. The
   * server has to be made with `rejectUnauthorized: false` then; all others that it does not authorize are cut off here.
   */
  constructor(allowedNames: readonly string[], admitsPeers = false) {
    this.#allowedNames = new Set(allowedNames);
    this.#admitsPeers = admitsPeers;
  }

  /**
   * Follows the connections of a server that was made with `first`. The returned object takes other certificates for
   * new connections. Existing connections continue; with other client authorities they end, after the request that
   * runs.
   */
  follow(server: Server, first: TlsPair): { setSecureContext(pair: TlsPair): void } {
    let { ca } = first;
    this.#own = [fingerprintOf(first.cert)];
    server.on('secureConnection', (socket) => {
      if (this.#admitsPeers && ca !== undefined && !socket.authorized && !this.isPeer(socket)) {
        socket.destroy();
        return;
      }
      this.#open.add(socket);
      socket.once('close', () => this.#open.delete(socket));
    });
    return {
      setSecureContext: (next) => {
        const isOtherAuthority = next.ca !== ca;
        ca = next.ca;
        const own = fingerprintOf(next.cert);
        this.#own = [own, ...this.#own.filter((one) => one !== own)].slice(0, 2);
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
    if (this.#allowedNames.size === 0 || this.#admitted.has(socket) || this.isPeer(socket)) return undefined;
    const name = commonNameOf(socket);
    if (name !== undefined && this.#allowedNames.has(name)) {
      this.#admitted.add(socket);
      return undefined;
    }
    const got = name === undefined ? 'no single common name' : JSON.stringify(name.slice(0, MAX_CHARS));
    return `the client certificate has ${got}, which --client-allowed-names does not list`;
  }

  /**
   * Reports whether the client has the server's own certificate, or the one before. The handshake has proved that it has
   * the key: it is another replica.
   */
  isPeer(socket: Socket): boolean {
    if (!this.#admitsPeers || !(socket instanceof TLSSocket)) return false;
    const { fingerprint256 } = socket.getPeerCertificate();
    return fingerprint256 !== undefined && this.#own.includes(fingerprint256);
  }

  /** Reports whether a connection was made under earlier authorities: an answer on it says `connection: close`. */
  isOutdated(socket: Socket): boolean {
    return this.#outdated.has(socket);
  }
}

const MAX_CHARS = 80;

/** Header of a request that another replica has forwarded. It counts only on connections of replicas. */
export const FORWARDED_HEADER = 'x-tke-eni-forwarded';

/** Returns the SHA-256 fingerprint of the first certificate of a chain in PEM. */
export function fingerprintOf(pem: string): string {
  return new X509Certificate(pem).fingerprint256;
}

/** The common name of the client certificate; undefined where there is none or more than one. */
function commonNameOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  // The type says one text; a subject with several common names has a list.
  const name: unknown = socket.getPeerCertificate().subject?.CN;
  return typeof name === 'string' ? name : undefined;
}
