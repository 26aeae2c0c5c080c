import { createHash, createPublicKey, generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';

/** A certificate and its private key, in PEM. */
export type CertificatePair = { readonly cert: string; readonly key: string };

/** What a new certificate says. */
export type CertificateSpec = {
  /** At most 64 characters. */
  readonly commonName: string;
  /** What it may be used for. */
  readonly use: 'authority' | 'server' | 'client';
  /** DNS names and addresses of a server. */
  readonly names?: readonly string[];
  /** First and last moment, milliseconds since the epoch; whole seconds are kept. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
};

/**
 * Makes a certificate with a new key on the curve P-256, signed by `issuer`; without one it signs itself.
 * @param issuer an authority that this function made
 * @see RFC 5280 sections 4.1 and 4.2, RFC 5480
 */
export function makeCertificate(spec: CertificateSpec, issuer?: CertificatePair): CertificatePair {
  const { publicKey, privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'prime256v1',
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const signer = issuer === undefined ? undefined : new X509Certificate(issuer.cert);
  const signerKey = signer?.publicKey.export({ type: 'spki', format: 'der' }) ?? publicKey;
  const body = sequence(
    tlv(0xa0, integer(Buffer.from([2]))),
    integer(serialNumber()),
    ECDSA_WITH_SHA256,
    nameOf(signer === undefined ? spec.commonName : signer.subject.replace(/^CN=/, '')),
    sequence(time(spec.notBeforeMs), time(spec.notAfterMs)),
    nameOf(spec.commonName),
    publicKey,
    tlv(0xa3, sequence(...extensionsOf(spec, keyId(publicKey), keyId(signerKey)))),
  );
  const signature = sign('sha256', body, issuer?.key ?? privateKey);
  const der = sequence(body, ECDSA_WITH_SHA256, bitString(0, signature));
  return { cert: new X509Certificate(der).toString(), key: privateKey };
}

/** Reports whether a private key in PEM belongs to a certificate. */
export function isKeyOf(key: string, certificate: X509Certificate): boolean {
  const ofCertificate = certificate.publicKey.export({ type: 'spki', format: 'der' });
  return createPublicKey(key).export({ type: 'spki', format: 'der' }).equals(ofCertificate);
}

function extensionsOf({ use, names = [] }: CertificateSpec, ownId: Buffer, issuerId: Buffer): readonly Buffer[] {
  const isAuthority = use === 'authority';
  const critical = tlv(0x01, Buffer.from([0xff]));
  const extension = (oid: string, value: Buffer, ...flag: readonly Buffer[]): Buffer =>
    sequence(objectId(oid), ...flag, octets(value));
  return [
    extension('2.5.29.19', sequence(...(isAuthority ? [critical] : [])), critical),
    // keyCertSign and cRLSign, or digitalSignature.
    extension(
      '2.5.29.15',
      isAuthority ? bitString(1, Buffer.from([0x06])) : bitString(7, Buffer.from([0x80])),
      critical,
    ),
    ...(isAuthority ? [] : [extension('2.5.29.37', sequence(objectId(EXTENDED_USE[use])))]),
    ...(names.length === 0 ? [] : [extension('2.5.29.17', sequence(...names.map(generalName)))]),
    extension('2.5.29.14', octets(ownId)),
    extension('2.5.29.35', sequence(tlv(0x80, issuerId))),
  ];
}

const EXTENDED_USE = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' } as const;

/** Names a key: which one signed, where two authorities have one name. */
function keyId(publicKey: Buffer): Buffer {
  return createHash('sha256').update(publicKey).digest().subarray(0, 20);
}

/** A positive number of 16 bytes. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes;
}

function nameOf(commonName: string): Buffer {
  const attribute = sequence(objectId('2.5.4.3'), tlv(0x0c, Buffer.from(commonName, 'utf8')));
  return sequence(tlv(0x31, attribute));
}

function generalName(name: string): Buffer {
  const version = isIP(name);
  if (version === 0) return tlv(0x82, Buffer.from(name, 'ascii'));
  return tlv(0x87, version === 4 ? Buffer.from(name.split('.').map(Number)) : ipv6Bytes(name));
}

function ipv6Bytes(address: string): Buffer {
  // The URL parser writes an address in its shortest form, without a dotted part.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const [first, last] = [groupsOf(head), groupsOf(tail ?? '')];
  const zeros = Array<string>(8 - first.length - last.length).fill('0');
  const groups = [...first, ...(tail === undefined ? [] : zeros), ...last];
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

/** UTCTime until 2049, GeneralizedTime after it. @see RFC 5280 section 4.1.2.5 */
function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  return text < '2050' ? tlv(0x17, Buffer.from(text.slice(2))) : tlv(0x18, Buffer.from(text));
}

const ECDSA_WITH_SHA256 = sequence(objectId('1.2.840.10045.4.3.2'));

function sequence(...parts: readonly Buffer[]): Buffer {
  return tlv(0x30, ...parts);
}

function octets(value: Buffer): Buffer {
  return tlv(0x04, value);
}

function bitString(unusedBits: number, value: Buffer): Buffer {
  return tlv(0x03, Buffer.from([unusedBits]), value);
}

function integer(value: Buffer): Buffer {
  return tlv(0x02, value);
}

function objectId(text: string): Buffer {
  const [first = 0, second = 0, ...others] = text.split('.').map(Number);
  const base128 = (value: number): number[] =>
    value < 128 ? [value] : [...base128(Math.floor(value / 128)).map((byte) => byte | 0x80), value % 128];
  return tlv(0x06, Buffer.from([first * 40 + second, ...others.flatMap(base128)]));
}

/** One value of DER: tag, length, content. @see X.690 section 8.1 */
function tlv(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
