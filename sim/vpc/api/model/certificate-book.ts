import { createPrivateKey, X509Certificate } from 'node:crypto';
import { ApiError } from './api-error.ts';

/** A certificate that the account keeps. */
export type ModelCertificate = {
  readonly certId: string;
  readonly alias: string;
  readonly type: 'SVR' | 'CA';
  /** PEM. */
  readonly chain: string;
  /** PEM; '' for that of an authority. No describe answers with it. */
  readonly key: string;
  readonly domain: string;
  readonly altNames: readonly string[];
  readonly algorithm: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly tags: Readonly<Record<string, string>>;
  readonly insertedAtMs: number;
};

/** What a certificate itself says. */
type CertificateFacts = Pick<ModelCertificate, 'domain' | 'altNames' | 'algorithm' | 'notBeforeMs' | 'notAfterMs'>;

/** The certificates of the account. */
export class CertificateBook {
  readonly #byId = new Map<string, ModelCertificate>();

  /** All of them, the oldest first. */
  all(): readonly ModelCertificate[] {
    return [...this.#byId.values()];
  }

  /** @throws ApiError FailedOperation.CertificateNotFound */
  certificate(certId: string): ModelCertificate {
    const found = this.#byId.get(certId);
    if (found !== undefined) return found;
    throw new ApiError('FailedOperation.CertificateNotFound', `The certificate ${certId} does not exist.`);
  }

  /** One that a listener may show now. @throws ApiError when there is none, or when it is expired */
  usable(certId: string, type: ModelCertificate['type'], nowMs: number): ModelCertificate {
    const found = this.#byId.get(certId);
    if (found?.type !== type) {
      throw new ApiError('InvalidParameterValue', `The certificate ${certId} of type ${type} does not exist.`);
    }
    if (found.notAfterMs > nowMs) return found;
    throw new ApiError('InvalidParameterValue', `The certificate ${certId} is expired.`);
  }

  put(certificate: ModelCertificate): void {
    this.#byId.set(certificate.certId, certificate);
  }

  remove(certId: string): void {
    this.#byId.delete(certId);
  }
}

/** Reads a certificate in PEM, and checks that a key belongs to it; '' : none does. @throws ApiError */
export function readPem(chain: string, key: string): CertificateFacts {
  const certificate = parse(chain);
  if (key !== '' && !isKeyOf(certificate, key)) {
    throw new ApiError('FailedOperation.CertificateMismatch', 'The certificate and the private key do not match.');
  }
  const altNames = (certificate.subjectAltName ?? '')
    .split(', ')
    .filter((name) => name.startsWith('DNS:'))
    .map((name) => name.slice('DNS:'.length));
  return {
    domain: /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? altNames[0] ?? '',
    altNames,
    algorithm: certificate.publicKey.asymmetricKeyType === 'ec' ? 'ECC 256' : 'RSA 2048',
    notBeforeMs: Date.parse(certificate.validFrom),
    notAfterMs: Date.parse(certificate.validTo),
  };
}

function parse(chain: string): X509Certificate {
  try {
    return new X509Certificate(chain);
  } catch {
    throw new ApiError('FailedOperation.CertificateInvalid', 'The certificate is not valid.');
  }
}

function isKeyOf(certificate: X509Certificate, key: string): boolean {
  try {
    return certificate.checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}
