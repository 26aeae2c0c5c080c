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

/** A source has no key: nothing is set, written or bound there. Any other error says that this is not known. */
export class NoKeyError extends Error {
  override readonly name = 'NoKeyError';
}

/** Fetches a credential from its origin. @throws NoKeyError, or another error that names what was missing, and where */
export type FetchCredential = (signal: AbortSignal) => Promise<FetchedCredential>;

/** Why there is no credential: no source has a key, or STS refuses one for the key that is there. */
export type KeyFailure = 'CredentialsMissing' | 'CredentialsRefused';

/** Receives why there is no credential; `text` is for people. */
export type KeyFailureListener = (kind: KeyFailure, text: string) => void;
