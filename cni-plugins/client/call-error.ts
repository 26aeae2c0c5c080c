import type { FailureKind } from './exchange.ts';

/**
 * A call without an answer of the agent. It is unknown whether the call had an effect, except for UNREACHABLE: then it
 * had none.
 */
export class CallError extends Error {
  readonly code: FailureKind;

  constructor(code: FailureKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CallError';
    this.code = code;
  }
}
