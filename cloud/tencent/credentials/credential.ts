/** A key of the cloud API. */
export type Credential = {
  readonly secretId: string;
  readonly secretKey: string;
  /** Present for temporary keys. */
  readonly token?: string;
};

/** A source of the credential to sign with now. */
export type CredentialSource = {
  /** Returns the present credential. @throws CloudError CREDENTIALS when there is none */
  get(signal?: AbortSignal): Promise<Credential>;
  /** Marks the last credential as not accepted by the cloud: the next `get` fetches a new one. */
  invalidate(): void;
};

/** A credential as it was fetched. */
export type FetchedCredential = {
  readonly credential: Credential;
  /** Wall clock, milliseconds; absent when it does not expire by itself. */
  readonly expiresAtMs?: number;
};

/** Fetches a credential from its origin. @throws Error that names what was missing, and where */
export type FetchCredential = (signal: AbortSignal) => Promise<FetchedCredential>;
