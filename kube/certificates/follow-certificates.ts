import { X509Certificate } from 'node:crypto';
import { backoffMs } from '../../runtime/backoff.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { TlsFollower, TlsPair } from '../../runtime/tls-files.ts';
import { authoritiesOf } from './certificate-set.ts';
import type { CompleteSet } from './decide-certificates.ts';
import type { CertificateKeeper } from './keep-certificates.ts';

/** What the certificates of a server are followed with. */
type FollowedCertificates = {
  readonly keeper: CertificateKeeper;
  /** Tells clients which authorities to trust, before a certificate of them is used; absent: people do. */
  readonly publish?: (authorities: string) => Promise<void>;
  /** Whether clients need a certificate of these authorities too. */
  readonly asksClients: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
};

/** Interval of the checks: another replica may have made certificates. */
const CHECK_MS = 30_000;
const BACKOFF = { firstMs: 500, maxMs: 15_000, factor: 2, jitter: 0.5 } as const;

/**
 * Waits for the first certificates, through any failure. Rejects with the signal's reason when aborted. The first error of
 * each kind is logged.
 */
export async function firstCertificates(followed: FollowedCertificates, signal: AbortSignal): Promise<TlsPair> {
  const { keeper, clock, log, random, asksClients } = followed;
  let problem = '';
  for (let failures = 1; ; failures++) {
    signal.throwIfAborted();
    try {
      const set = await keeper.sync();
      await followed.publish?.(authoritiesOf(set));
      return pairOf(set, asksClients);
    } catch (error) {
      const why = textOf(error);
      if (why !== problem) log.error('no certificate yet, trying again', { why });
      problem = why;
      await clock.sleep(backoffMs(BACKOFF, failures, random()), signal);
    }
  }
}

/** The server that gets new certificates, and the pair that it was made with. */
type CertificateUser = { readonly server: { setSecureContext(pair: TlsPair): void }; readonly pair: TlsPair };

/**
 * Keeps the certificate of a server up to date: makes a new one before it ends, takes one that another replica made, and
 * publishes authorities before they are used. Open connections stay as they are. Through any failure the present
 * certificate stays in use.
 */
export function followCertificates(
  followed: FollowedCertificates,
  { server, pair: first }: CertificateUser,
): TlsFollower {
  const { keeper, clock, log, asksClients } = followed;
  let pair = first;
  let former: TlsPair | undefined;
  let problem: string | undefined;
  let reloads = 0;
  const check = async (): Promise<void> => {
    try {
      const set = await keeper.sync();
      await followed.publish?.(authoritiesOf(set));
      problem = undefined;
      const found = pairOf(set, asksClients);
      if (found.cert === pair.cert && found.ca === pair.ca) return;
      server.setSecureContext(found);
      if (found.cert !== pair.cert) former = pair;
      pair = found;
      reloads += 1;
      log.info('certificate reloaded', { expires: new Date(found.expiresMs).toISOString() });
    } catch (error) {
      const why = textOf(error);
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
        await clock.sleep(CHECK_MS, signal).catch(() => {});
      }
    },
  };
}

function pairOf(set: CompleteSet, asksClients: boolean): TlsPair {
  const { cert, key } = set.server;
  const expiresMs = new X509Certificate(cert).validToDate.getTime();
  return { cert, key, ...(asksClients && { ca: authoritiesOf(set) }), minVersion: 'TLSv1.2', expiresMs };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
