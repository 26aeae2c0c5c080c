/** A key to the cloud. */
export type Credential = {
  readonly secretId: string;
  readonly secretKey: string;
  /** Goes with temporary keys. */
  readonly token?: string;
};

/** Gives the credential to sign with now. */
export type CredentialSource = {
  /** @throws CloudError CREDENTIALS when there is none */
  get(signal?: AbortSignal): Promise<Credential>;
  /** Says that the cloud did not accept the last one: the next `get` fetches anew. */
  invalidate(): void;
};

/** A credential as it was fetched. */
export type FetchedCredential = {
  readonly credential: Credential;
  /** Wall clock, milliseconds; absent when it does not expire by itself. */
  readonly expiresAtMs?: number;
};

/** Fetches a credential from where it comes from. @throws Error saying what was missing, and where */
export type FetchCredential = (signal: AbortSignal) => Promise<FetchedCredential>;
