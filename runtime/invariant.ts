/**
 * An error for a state that the code of this project must never reach. Do not catch it: the process must not continue.
 */
class InvariantError extends Error {
  readonly code = 'INVARIANT';
  readonly values: Readonly<Record<string, unknown>>;

  constructor(message: string, values: Readonly<Record<string, unknown>>) {
    super(`${message} ${JSON.stringify(values, bigintAsText)}`);
    this.name = 'InvariantError';
    this.values = values;
  }
}

/**
 * Asserts what the code of this project guarantees; wrong input from outside is never an invariant.
 * @throws InvariantError with `values` when `condition` is false.
 */
export function invariant(
  condition: boolean,
  message: string,
  values: Readonly<Record<string, unknown>> = {},
): asserts condition {
  if (!condition) throw new InvariantError(message, values);
}

function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
