import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import { followTlsFiles, readTlsFiles } from '../../runtime/tls-files.ts';
import type { TlsFollower, TlsPair } from '../../runtime/tls-follower.ts';
import { type FollowedCertificates, firstCertificates, followCertificates } from './follow-certificates.ts';

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
