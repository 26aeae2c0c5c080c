/** The user who sends a request. */
export type User = { readonly username: string; readonly uid?: string; readonly groups: readonly string[] };

/** The user that may do everything; who comes without a token when nobody must bring one. */
export const ADMIN: User = { username: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] };

/** The user that a ServiceAccount's token stands for. */
export function serviceAccountUser(namespace: string, name: string): User {
  return {
    username: `system:serviceaccount:${namespace}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  };
}

/** Knows the bearer tokens that were given out. */
export class Authenticator {
  readonly #users = new Map<string, User>();

  /** Accepts a token for a user from now on. */
  add(token: string, user: User): void {
    this.#users.set(token, user);
  }

  /** Accepts a token no longer, as when a credential was rotated. */
  revoke(token: string): void {
    this.#users.delete(token);
  }

  userOf(token: string): User | undefined {
    return this.#users.get(token);
  }
}
