import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { PrivateKey } from '../../cloud/private-key.ts';

/** A certificate of a Secret, ready to be uploaded. */
export type OwnCertificate = {
  /** SHA-256 of the chain, 64 hexadecimal digits: its identity. */
  readonly hash: string;
  /** The first host that it is for, for people; '' : it names none. */
  readonly name: string;
  /** PEM: the certificate of the host, then those that signed it. */
  readonly chain: string;
  readonly privateKey: PrivateKey;
  /** From when it is valid, milliseconds since the epoch. */
  readonly validFromMs: number;
  /** The same for people. */
  readonly validFrom: string;
  /** When it expires, milliseconds since the epoch. */
  readonly expiresAtMs: number;
  /** The same for people: `2026-01-14T23:59:59.000Z`. */
  readonly expiresAt: string;
  /** How many names it has: what `isFor` compares with. */
  readonly names: number;
  /** Reports whether it is for a host, which may be a wildcard. */
  readonly isFor: (host: string) => boolean;
};

const MAX_CHARS = 65_536;
const MAX_CHAIN = 10;
const BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/**
 * Parses `tls.crt` and `tls.key` of a Secret: some milliseconds of work. Whether it is valid now is for `checkValidity`.
 * @returns a text for what is wrong; it has nothing of the key
 */
export function parseOwnCertificate(certificate: string, key: string): OwnCertificate | string {
  if (certificate.length > MAX_CHARS || key.length > MAX_CHARS)
    return `tls.crt and tls.key may have at most ${MAX_CHARS} characters`;
  const blocks = certificate.match(BLOCK) ?? [];
  if (blocks.length === 0) return 'tls.crt has no certificate in PEM';
  if (blocks.length > MAX_CHAIN) return `tls.crt has more than ${MAX_CHAIN} certificates`;
  const chain = parsed(() => blocks.map((block) => new X509Certificate(block)));
  const [leaf, ...others] = chain ?? [];
  if (leaf === undefined) return 'tls.crt is malformed';
  // The error of a malformed key could show a part of it.
  const privateKey = parsed(() => createPrivateKey(key));
  if (privateKey === undefined) return 'tls.key is not a private key in PEM without a password';
  if (!leaf.checkPrivateKey(privateKey))
    return 'tls.key is the key of another certificate than the first one of tls.crt';
  const all = [leaf, ...others];
  const hash = createHash('sha256');
  for (const { raw } of all) hash.update(raw);
  return {
    hash: hash.digest('hex'),
    name: nameOf(leaf),
    chain: all.map((one) => one.toString()).join(''),
    privateKey: new PrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
    validFromMs: leaf.validFromDate.getTime(),
    validFrom: leaf.validFromDate.toISOString(),
    expiresAtMs: leaf.validToDate.getTime(),
    expiresAt: leaf.validToDate.toISOString(),
    names: (leaf.subjectAltName ?? '').split(', ').length,
    isFor: (host) => leaf.checkHost(host.replace(/^\*\./, 'any.')) !== undefined,
  };
}

/** Returns why a certificate is not valid at a time; undefined: it is. */
export function checkValidity(
  { validFromMs, expiresAtMs, expiresAt, validFrom }: OwnCertificate,
  nowMs: number,
): string | undefined {
  if (expiresAtMs <= nowMs) return `the certificate has expired at ${expiresAt}`;
  return validFromMs > nowMs ? `the certificate is valid from ${validFrom}` : undefined;
}

function nameOf({ subjectAltName = '', subject }: X509Certificate): string {
  return /(?:^|, )DNS:([^,]+)/.exec(subjectAltName)?.[1] ?? /^CN=(.*)$/m.exec(subject)?.[1] ?? '';
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}
