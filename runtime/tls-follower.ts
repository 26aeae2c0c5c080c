import type { Clock } from './clock.ts';
import { messageOf } from './error-text.ts';
import type { Logger } from './log.ts';

/** A certificate chain and its key, in the form that an HTTPS server takes. */
export type TlsPair = {
  readonly cert: string;
  readonly key: string;
  /** Authorities in PEM: only clients with a certificate of one of them are answered; absent: all clients are. */
  readonly ca?: string;
  readonly minVersion: 'TLSv1.2';
  /** When the first certificate of the chain ends, milliseconds since the epoch. */
  readonly expiresMs: number;
};

/** Watches the certificate of a server; its last findings can be read at any time. */
export type TlsFollower = {
  /** The pair that the server uses. */
  readonly pair: TlsPair;
  /** The pair before it, which other replicas may still use; undefined before the first reload. */
  readonly former: TlsPair | undefined;
  /** Why the certificate that is to be used is not; undefined when it is. */
  readonly problem: string | undefined;
  /** How many times another pair was put into use. */
  readonly reloads: number;
  /** Looks at once and uses a new pair; files are read before it returns. Never rejects. */
  check(): Promise<void>;
  /** Looks again and again until aborted; never rejects. */
  run(signal: AbortSignal): Promise<void>;
};

/** A server that gets new certificates, such as one of `node:https`, and the pair that it was created with. */
export type CertificateUser = { readonly server: { setSecureContext(pair: TlsPair): void }; readonly pair: TlsPair };

type TlsFollowerDeps = CertificateUser & {
  /** Reads the pair that is to be used; throws, or rejects, with what is wrong. */
  readonly read: () => TlsPair | Promise<TlsPair>;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly log: Logger;
};

/**
 * Keeps the certificate of a server up to date without a restart; open connections stay as they are. Through any failure
 * the server continues with the present pair.
 */
export function followTls({ server, pair: first, read, intervalMs, clock, log }: TlsFollowerDeps): TlsFollower {
  let pair = first;
  let former: TlsPair | undefined;
  let problem: string | undefined;
  let reloads = 0;
  const check = async (): Promise<void> => {
    try {
      const found = await read();
      problem = undefined;
      if (found.cert === pair.cert && found.key === pair.key && found.ca === pair.ca) return;
      server.setSecureContext(found);
      if (found.cert !== pair.cert) former = pair;
      pair = found;
      reloads += 1;
      log.info('certificate reloaded', { expires: new Date(found.expiresMs).toISOString() });
    } catch (error) {
      const why = messageOf(error);
      // Log each problem once, however long it lasts.
      if (why !== problem) log.error('the certificate cannot be read anew, the previous one stays in use', { why });
      problem = why;
    }
  };
  return {
    get pair() {
      return pair;
    },
    get former() {
      return former;
    },
    get problem() {
      return problem;
    },
    get reloads() {
      return reloads;
    },
    check,
    run: async (signal) => {
      while (!signal.aborted) {
        await check();
        // The sleep rejects only when it is aborted; the loop condition handles that.
        await clock.sleep(intervalMs, signal).catch(() => {});
      }
    },
  };
}
