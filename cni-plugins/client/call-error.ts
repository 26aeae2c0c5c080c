import type { FailureKind } from './exchange.ts';

/** Reports that the agent gave no answer. Whether it did what it was asked is unknown, but for UNREACHABLE. */
export class CallError extends Error {
  readonly code: FailureKind;

  constructor(code: FailureKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CallError';
    this.code = code;
  }
}
