import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../../runtime/clock.ts';
import { ConfigError } from '../../runtime/decode.ts';
import type { Logger } from '../../runtime/log.ts';

/** Files that a server identifies itself with; '' for no client authorities. */
export type CertificateFiles = { readonly cert: string; readonly key: string; readonly clientCa: string };

/** What TLS is spoken with. */
export type Certificates = {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca?: Buffer;
  readonly minVersion: 'TLSv1.2';
};

/** How often the files are looked at: a Secret that changed is there within a minute anyway. */
const LOOK_MS = 5_000;

/** Reads the files, and tries whether they belong together. @throws ConfigError that names the file */
export function readCertificates(files: CertificateFiles): Certificates {
  const ca = files.clientCa === '' ? {} : { ca: readPem(files.clientCa) };
  const read: Certificates = { cert: readPem(files.cert), key: readPem(files.key), ...ca, minVersion: 'TLSv1.2' };
  try {
    createSecureContext(read);
  } catch (error) {
    const expected = `a certificate and its private key, with ${files.key}`;
    const got = error instanceof Error ? error.message : String(error);
    throw new ConfigError('settings', [{ path: files.cert, expected, got }]);
  }
  return read;
}

/**
 * Calls `renew` with what is in the files whenever that changes, until aborted. What cannot be used, such as one file of a
 * pair that is being replaced, is logged once and looked at again; until then the last good ones serve.
 */
export async function followCertificates(
  files: CertificateFiles,
  first: Certificates,
  renew: (certificates: Certificates) => void,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): Promise<void> {
  let current = first;
  let told = '';
  while (!signal.aborted) {
    await clock.sleep(LOOK_MS, signal).catch(() => {});
    if (signal.aborted) return;
    try {
      const read = readCertificates(files);
      told = '';
      if (isSame(read, current)) continue;
      renew(read);
      current = read;
      log.info('certificates were replaced', { file: files.cert });
    } catch (error) {
      const text = String(error);
      if (text !== told) log.warn('new certificates cannot be used, the last ones stay', { error });
      told = text;
    }
  }
}

function isSame(one: Certificates, other: Certificates): boolean {
  const isSameCa = one.ca === undefined || other.ca === undefined ? one.ca === other.ca : one.ca.equals(other.ca);
  return isSameCa && one.cert.equals(other.cert) && one.key.equals(other.key);
}

function readPem(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const got = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new ConfigError('settings', [{ path, expected: 'a PEM file that can be read', got }]);
  }
}
