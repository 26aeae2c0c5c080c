import { X509Certificate } from 'node:crypto';
import { isRecord } from '../../runtime/decode.ts';
import { type CertificatePair, isKeyOf } from '../../runtime/make-certificate.ts';

/** The certificates of one program, as its Secret has them. A part that is missing or damaged is undefined. */
export type CertificateSet = {
  /** The authority that signs. */
  readonly authority?: CertificatePair;
  /** The authority that signs after it: announced, so that clients trust it by then. */
  readonly next?: CertificatePair;
  /** Certificates of earlier authorities that have not ended, PEM. */
  readonly earlier: readonly string[];
  readonly server?: CertificatePair;
  /** For the client that the program answers, where it makes one. */
  readonly client?: CertificatePair;
};

/** Keys of the Secret. `ca.crt` has the authorities that clients should trust: the one that signs, the next, earlier ones. */
const KEY = {
  authorities: 'ca.crt',
  authorityKey: 'ca.key',
  next: 'next-ca.crt',
  nextKey: 'next-ca.key',
  server: 'tls.crt',
  serverKey: 'tls.key',
  client: 'client.crt',
  clientKey: 'client.key',
} as const;

/** Most authorities that are read. A set has three at most, but for clocks that jump. */
const MAX_AUTHORITIES = 8;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Reads the data of a Secret. Never throws: whatever cannot be used is left out. */
export function readCertificateSet(data: unknown): CertificateSet {
  const textOf = (key: string): string => {
    const value = isRecord(data) ? data[key] : undefined;
    return typeof value === 'string' ? Buffer.from(value, 'base64').toString('utf8') : '';
  };
  const authorities = (textOf(KEY.authorities).match(CERTIFICATE) ?? [])
    .slice(0, MAX_AUTHORITIES)
    .map((one) => `${one}\n`);
  const authority = readPair(authorities[0] ?? '', textOf(KEY.authorityKey));
  const next = readPair(textOf(KEY.next), textOf(KEY.nextKey));
  const server = readPair(textOf(KEY.server), textOf(KEY.serverKey));
  const client = readPair(textOf(KEY.client), textOf(KEY.clientKey));
  const known = [authority?.cert, next?.cert];
  return {
    ...(authority && { authority }),
    ...(next && { next }),
    earlier: authorities.filter((one) => !known.includes(one) && parseCertificate(one) !== undefined),
    ...(server && { server }),
    ...(client && { client }),
  };
}

/** Renders the data of a Secret. */
export function renderCertificateSet(set: CertificateSet): Readonly<Record<string, string>> {
  const { authority, next, server, client } = set;
  const texts: readonly (readonly [string, string | undefined])[] = [
    [KEY.authorities, authoritiesOf(set)],
    [KEY.authorityKey, authority?.key],
    [KEY.next, next?.cert],
    [KEY.nextKey, next?.key],
    [KEY.server, server?.cert],
    [KEY.serverKey, server?.key],
    [KEY.client, client?.cert],
    [KEY.clientKey, client?.key],
  ];
  return Object.fromEntries(
    texts.flatMap(([key, text]) => (text === undefined ? [] : [[key, Buffer.from(text).toString('base64')]])),
  );
}

/** Returns the authorities that clients should trust, PEM, the one that signs first. */
export function authoritiesOf({ authority, next, earlier }: CertificateSet): string {
  return [authority?.cert, next?.cert, ...earlier].filter((one) => one !== undefined).join('');
}

/** Parses a certificate in PEM; undefined when it is none. */
export function parseCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function readPair(cert: string, key: string): CertificatePair | undefined {
  const certificate = parseCertificate(cert);
  try {
    return certificate !== undefined && isKeyOf(key, certificate) ? { cert, key } : undefined;
  } catch {
    return undefined;
  }
}
