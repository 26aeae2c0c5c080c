/** Largest body of a request to one of our HTTPS servers, unless a flag says otherwise: 1 MiB. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Memory budget for the request bodies of a server: for one body, and for all bodies that are being read. In bytes. */
export class BodyBudget {
  readonly maxBody: number;
  readonly #maxTotal: number;
  #used = 0;

  constructor(maxBody: number, maxTotal: number) {
    this.maxBody = maxBody;
    this.#maxTotal = maxTotal;
  }

  /** Acquires `bytes` of the budget; returns false when too few are left. */
  acquire(bytes: number): boolean {
    if (this.#used + bytes > this.#maxTotal) return false;
    this.#used += bytes;
    return true;
  }

  /** Releases bytes that were acquired. */
  release(bytes: number): void {
    this.#used -= bytes;
  }
}
