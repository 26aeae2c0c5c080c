import type { CallContext, Tags } from './cloud.ts';
import type { PrivateKey } from './private-key.ts';

/** Most certificates of one question for their users. */
export const CERTIFICATES_PER_QUESTION = 20;

/** Which certificates a listener of HTTPS, or one domain of it, shows. */
export type ListenerCertificate = {
  /** Ids of server certificates: one, or two of different algorithms (RSA and ECC). */
  readonly certIds: readonly string[];
  /** The authority whose clients are admitted; absent: clients need no certificate. */
  readonly caCertId?: string;
};

/** A server certificate that the account keeps. It is never described with its key. */
export type Certificate = {
  readonly certId: string;
  /** The alias; '' : none. */
  readonly name: string;
  /** Common name, lower case. */
  readonly domain: string;
  /** Subject alternative names, lower case, wildcards included. */
  readonly altNames: readonly string[];
  /** Milliseconds since the epoch; 0 when the cloud does not report it. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Time of upload, milliseconds since the epoch; 0 when the cloud does not report it. */
  readonly createdAtMs: number;
  /** Algorithm of the key: RSA, ECC; '' when the cloud does not report it. */
  readonly algorithm: string;
  /** Whether it was uploaded, and not issued by the product. */
  readonly isUploaded: boolean;
  readonly tags: Tags;
};

/** A certificate that is to be uploaded. */
type CertificateSpec = {
  /** Alias, 1 to 200 characters; several certificates may have the same. */
  readonly name: string;
  /** PEM: the certificate, then those that signed it; at most 64 KiB. */
  readonly chain: string;
  readonly privateKey: PrivateKey;
  readonly tags?: Tags;
};

/** Selects certificates. Each field narrows the selection. */
export type CertificateQuery = {
  readonly tag?: { readonly key: string; readonly value: string };
  /** Part of an id, alias or domain. */
  readonly search?: string;
};

/** The certificates that a query selects. */
type CertificateSweep = {
  readonly certificates: readonly Certificate[];
  /** False when the number changed between pages, each time: one that is not listed may exist all the same. */
  readonly isConsistent: boolean;
};

/**
 * Certificates of the account (the SSL product). Changes are done when the promise resolves. The API has no ClientToken:
 * after an upload with an unknown outcome, find by tag.
 * @see https://www.tencentcloud.com/document/product/1007/36575 UploadCertificate, and its siblings
 */
export type CertificatePort = {
  /**
   * Uploads a server certificate with its key, also one that the account has already. @returns its id. @throws CloudError
   * `never` when chain and key do not belong together, `quota` with scope `certificates`
   */
  upload(spec: CertificateSpec, context: CallContext): Promise<string>;
  /** Reads all server certificates that a query selects. */
  find(query: CertificateQuery, context: CallContext): Promise<CertificateSweep>;
  /** Describes one certificate. @throws CloudError `gone` when it does not exist */
  describe(certId: string, context: CallContext): Promise<Certificate>;
  /**
   * Reads which load balancers of the region use certificates, 1 to `CERTIFICATES_PER_QUESTION` of them: the ids of load
   * balancers by certificate. Each one that was asked for is there.
   */
  usersOf(certIds: readonly string[], context: CallContext): Promise<ReadonlyMap<string, readonly string[]>>;
  /**
   * Deletes a certificate. The cloud may do it though something uses it: ask `usersOf` first. @throws CloudError `gone` when
   * it does not exist; `never` with code FailedOperation.DeleteResourceFailed when the cloud says that it is in use
   */
  delete(certId: string, context: CallContext): Promise<void>;
};
