/** Reports a value that has no place on the wire, or bytes that are no message. */
export class CodecError extends Error {
  override readonly name = 'CodecError';
  readonly code = 'EINVAL';
  /** The field or structure at fault, as `route.gateway`. */
  readonly field: string;

  constructor(field: string, problem: string) {
    super(`${field}: ${problem}`);
    this.field = field;
  }
}
