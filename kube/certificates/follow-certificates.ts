import { X509Certificate } from 'node:crypto';
import { backoffMs } from '../../runtime/backoff.ts';
import type { Clock } from '../../runtime/clock.ts';
import { messageOf } from '../../runtime/error-text.ts';
import type { Logger } from '../../runtime/log.ts';
import { type CertificateUser, followTls, type TlsFollower, type TlsPair } from '../../runtime/tls-follower.ts';
import { authoritiesOf } from './certificate-set.ts';
import type { CompleteSet } from './decide-certificates.ts';
import type { CertificateKeeper } from './keep-certificates.ts';

/** What the certificates of a server are followed with. */
export type FollowedCertificates = {
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
      const why = messageOf(error);
      if (why !== problem) log.error('no certificate yet, trying again', { why });
      problem = why;
      await clock.sleep(backoffMs(BACKOFF, failures, random()), signal);
    }
  }
}

/**
 * Keeps the certificate of a server up to date: makes a new one before it ends, takes one that another replica made, and
 * publishes authorities before they are used.
 */
export function followCertificates(followed: FollowedCertificates, user: CertificateUser): TlsFollower {
  const { keeper, clock, log, asksClients } = followed;
  const read = async (): Promise<TlsPair> => {
    const set = await keeper.sync();
    await followed.publish?.(authoritiesOf(set));
    return pairOf(set, asksClients);
  };
  return followTls({ ...user, read, intervalMs: CHECK_MS, clock, log });
}

function pairOf(set: CompleteSet, asksClients: boolean): TlsPair {
  const { cert, key } = set.server;
  const expiresMs = new X509Certificate(cert).validToDate.getTime();
  return { cert, key, ...(asksClients && { ca: authoritiesOf(set) }), minVersion: 'TLSv1.2', expiresMs };
}
