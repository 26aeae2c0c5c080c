import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { Clock } from './clock.ts';
import { ConfigError, type Fault } from './decode.ts';
import { messageOf } from './error-text.ts';
import type { Logger } from './log.ts';
import { FileError, readRegularText } from './read-regular-file.ts';
import { type CertificateUser, followTls, type TlsFollower, type TlsPair } from './tls-follower.ts';

/** Paths of a server's certificate chain and its key, in PEM. In a mounted Secret: `tls.crt` and `tls.key`. */
type TlsFiles = {
  readonly certFile: string;
  readonly keyFile: string;
  /** Path of a PEM bundle of authorities for client certificates; absent: clients need no certificate. */
  readonly clientCaFile?: string;
};

/**
 * Reads a certificate, its key and, if given, the authorities of clients, and checks that certificate and key match.
 * @throws ConfigError with every fault: a file that cannot be read, that is not PEM or only a part of it, or a key of
 * another certificate
 */
export function readTlsFiles({ certFile, keyFile, clientCaFile }: TlsFiles): TlsPair {
  const faults: Fault[] = [];
  const cert = readText(certFile, 'a certificate in PEM', faults);
  const key = readText(keyFile, 'its private key in PEM', faults);
  const expiresMs = cert === undefined ? undefined : readCertificates(certFile, cert, faults);
  const fault =
    cert === undefined || key === undefined || expiresMs === undefined ? undefined : keyFault(keyFile, cert, key);
  if (fault !== undefined) faults.push(fault);
  const ca = clientCaFile === undefined ? undefined : readText(clientCaFile, CLIENT_CA, faults);
  // OpenSSL accepts a bundle without any certificate, and then refuses every client. So count them here.
  if (clientCaFile !== undefined && ca !== undefined) readCertificates(clientCaFile, ca, faults);
  if (faults.length > 0 || cert === undefined || key === undefined || expiresMs === undefined) {
    throw new ConfigError('TLS files', faults);
  }
  return { cert, key, ...(ca === undefined ? {} : { ca }), minVersion: 'TLSv1.2', expiresMs };
}

/** The files of the certificate of a server, and the server. */
type FollowedFiles = CertificateUser & { readonly files: TlsFiles; readonly clock: Clock; readonly log: Logger };

/**
 * Interval of the checks. kubelet takes a minute to update a mounted Secret, so notifications by the kernel would gain
 * nothing.
 */
const CHECK_INTERVAL_MS = 10_000;

/**
 * Updates a server's certificate from its files without a restart. A pair that does not match, such as one that is half
 * written, is not used.
 */
export function followTlsFiles({ files, ...user }: FollowedFiles): TlsFollower {
  return followTls({ ...user, read: () => readTlsFiles(files), intervalMs: CHECK_INTERVAL_MS });
}

const CLIENT_CA = 'certificates in PEM: the authorities of clients (--client-ca-file), in a Secret its key ca.crt';

function readText(path: string, what: string, faults: Fault[]): string | undefined {
  try {
    return readRegularText(path, MAX_BYTES);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    const got = error instanceof FileError ? error.message : code;
    faults.push({ path, expected: `a file with ${what}`, got });
  }
  return undefined;
}

/** Largest file that is read, bytes: a chain of ten certificates has 20 kB. */
const MAX_BYTES = 1024 * 1024;

const BEGIN_CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/g;
const COMPLETE_CERTIFICATE = /-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE)-----[\s\S]+?-----END \1-----/g;

/** Reads every certificate of a file and detects one that is half written; returns when the first of them expires. */
function readCertificates(path: string, pem: string, faults: Fault[]): number | undefined {
  const complete = pem.match(COMPLETE_CERTIFICATE) ?? [];
  const beginCount = pem.match(BEGIN_CERTIFICATE)?.length ?? 0;
  if (complete.length === 0 || complete.length < beginCount) {
    const got = beginCount === 0 ? 'none' : `${beginCount}, of which ${complete.length} have an end`;
    faults.push({ path, expected: 'a certificate in PEM', got });
    return undefined;
  }
  try {
    const [firstMs] = complete.map((one) => new X509Certificate(one).validToDate.getTime());
    return firstMs;
  } catch (error) {
    faults.push({ path, expected: 'a certificate in PEM', got: messageOf(error) });
    return undefined;
  }
}

/** Checks that a key belongs to a certificate. The fault never quotes the key, because faults are logged. */
function keyFault(path: string, cert: string, key: string): Fault | undefined {
  try {
    createSecureContext({ cert, key });
    return undefined;
  } catch (error) {
    return {
      path,
      expected: 'the private key of the certificate, in PEM and without a password',
      got: messageOf(error),
    };
  }
}
