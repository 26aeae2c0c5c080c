import { X509Certificate } from 'node:crypto';
import { backoffMs } from '../../runtime/backoff.ts';
import type { Clock } from '../../runtime/clock.ts';
import { messageOf } from '../../runtime/error-text.ts';
import type { Logger } from '../../runtime/log.ts';
import { followTlsFiles, readTlsFiles } from '../../runtime/tls-files.ts';
import { type CertificateUser, followTls, type TlsFollower, type TlsPair } from '../../runtime/tls-follower.ts';
import { authoritiesOf } from './certificate-set.ts';
import type { CertificateKeeper } from './keep-certificates.ts';

/** The first certificate of a server, and what keeps it up to date. */
export type ServerCertificates = {
  readonly pair: TlsPair;
  readonly follow: (server: { setSecureContext(pair: TlsPair): void }) => TlsFollower;
};

/** The settings of certificates in files; '' for no authorities of clients. */
type FileSettings = {
  readonly tlsCertFile: string;
  readonly tlsPrivateKeyFile: string;
  readonly clientCaFile: string;
};

/** Reads the certificate of a server from files. @throws ConfigError when the files cannot be used */
export function certificatesInFiles(
  { tlsCertFile: certFile, tlsPrivateKeyFile: keyFile, clientCaFile }: FileSettings,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): ServerCertificates {
  const files = { certFile, keyFile, ...(clientCaFile === '' ? {} : { clientCaFile }) };
  const pair = readTlsFiles(files);
  return { pair, follow: (server) => followTlsFiles({ server, files, pair, clock, log }) };
}

/** Waits for the certificate that the replicas make themselves. Rejects with the signal's reason when aborted. */
export async function certificatesOfReplicas(
  followed: FollowedCertificates,
  signal: AbortSignal,
): Promise<ServerCertificates> {
  const pair = await firstCertificates(followed, signal);
  return { pair, follow: (server) => followCertificates(followed, { server, pair }) };
}

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
async function firstCertificates(followed: FollowedCertificates, signal: AbortSignal): Promise<TlsPair> {
  const { clock, log, random } = followed;
  let problem = '';
  for (let failures = 1; ; failures++) {
    signal.throwIfAborted();
    try {
      return await syncPair(followed);
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
function followCertificates(followed: FollowedCertificates, user: CertificateUser): TlsFollower {
  const { clock, log } = followed;
  return followTls({ ...user, read: () => syncPair(followed), intervalMs: CHECK_MS, clock, log });
}

/** Brings the certificates up to date, publishes the authorities, and returns what the server serves. */
async function syncPair({ keeper, publish, asksClients }: FollowedCertificates): Promise<TlsPair> {
  const set = await keeper.sync();
  await publish?.(authoritiesOf(set));
  const { cert, key } = set.server;
  const expiresMs = new X509Certificate(cert).validToDate.getTime();
  return { cert, key, ...(asksClients && { ca: authoritiesOf(set) }), minVersion: 'TLSv1.2', expiresMs };
}
