import { ApiError } from './model/api-error.ts';

/** A key that the simulated cloud accepts. */
export type IssuedKey = {
  readonly secretId: string;
  readonly secretKey: string;
  readonly token?: string;
  /** Wall clock, milliseconds; absent for a permanent key. */
  readonly expiresAtMs?: number;
};

/** The keys that the cloud accepts, permanent and temporary. */
export class CredentialBook {
  #keys = new Map<string, IssuedKey>();
  #serial = 0;

  /** Accepts a permanent key. */
  add(secretId: string, secretKey: string): IssuedKey {
    const key = { secretId, secretKey };
    this.#keys.set(secretId, key);
    return key;
  }

  /** Issues a temporary key. */
  issue(nowMs: number, livesMs: number): Required<IssuedKey> {
    this.#serial += 1;
    const key = {
      secretId: `AKIDtmp${this.#serial}`,
      secretKey: `tmp-secret-${this.#serial}`,
      token: `tmp-token-${this.#serial}`,
      expiresAtMs: nowMs + livesMs,
    };
    this.#keys.set(key.secretId, key);
    return key;
  }

  /** Stops accepting a key, or every one. */
  revoke(secretId?: string): void {
    if (secretId === undefined) this.#keys.clear();
    else this.#keys.delete(secretId);
  }

  /** Number of temporary keys issued so far. */
  get issued(): number {
    return this.#serial;
  }

  /** The key of that id, if it and its token are good now. @throws ApiError AuthFailure.* */
  find(secretId: string, token: string | undefined, nowMs: number): IssuedKey {
    const key = this.#keys.get(secretId);
    if (key === undefined) throw new ApiError('AuthFailure.SecretIdNotFound', 'The SecretId is not found.');
    if (key.token !== token || (key.expiresAtMs !== undefined && nowMs >= key.expiresAtMs)) {
      throw new ApiError('AuthFailure.TokenFailure', 'The token is expired or does not belong to the key.');
    }
    return key;
  }
}
