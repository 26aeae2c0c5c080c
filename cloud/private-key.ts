const HIDDEN = '[private key]';
/** What `util.inspect` asks an object for. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** A private key in PEM. Its text, JSON and inspected forms are a placeholder, so that no log or error contains it. */
export class PrivateKey {
  readonly #pem: string;

  constructor(pem: string) {
    this.#pem = pem;
  }

  /** Returns the PEM itself, for the request that uploads it. */
  reveal(): string {
    return this.#pem;
  }

  toString(): string {
    return HIDDEN;
  }

  toJSON(): string {
    return HIDDEN;
  }

  [INSPECT](): string {
    return HIDDEN;
  }
}
