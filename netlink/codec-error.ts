/** A value that cannot be encoded, or bytes that are not a message. */
export class CodecError extends Error {
  override readonly name = 'CodecError';
  readonly code = 'EINVAL';
  /** The faulty field or structure, such as `route.gateway`. */
  readonly field: string;

  constructor(field: string, problem: string) {
    super(`${field}: ${problem}`);
    this.field = field;
  }
}
