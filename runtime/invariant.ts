/** Marks a state that our own code promised never to reach. Nobody catches it: the process must not go on. */
export class InvariantError extends Error {
  readonly code = 'INVARIANT';
  readonly values: Readonly<Record<string, unknown>>;

  constructor(message: string, values: Readonly<Record<string, unknown>>) {
    super(`${message} ${JSON.stringify(values, bigintAsText)}`);
    this.name = 'InvariantError';
    this.values = values;
  }
}

/**
 * Asserts what our own code guarantees; bad input from outside is never an invariant.
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
