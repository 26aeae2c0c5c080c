import { CNI_CODE } from '../../agent/api/cni-code.ts';
import { messageOf } from '../../runtime/error-text.ts';

/**
 * The failure of a CNI call, in the terms of CNI. The message names the object and what was expected; the details name
 * the next step.
 *
 * @see https://www.cni.dev/docs/spec/#error
 */
export class CniError extends Error {
  /** 1-99 are codes of the specification, 100 and above those of this plugin. */
  readonly code: number;
  readonly details: string;

  constructor(code: number, message: string, details = '', options?: ErrorOptions) {
    super(message, options);
    this.name = 'CniError';
    this.code = code;
    this.details = details;
  }
}

/** Converts any thrown value to a CNI error; a value that is not one gets code 999. Never throws. */
export function toCniError(thrown: unknown): CniError {
  if (thrown instanceof CniError) return thrown;
  const message = messageOf(thrown);
  const stack = thrown instanceof Error ? (thrown.stack ?? '') : '';
  return new CniError(CNI_CODE.internal, `internal error: ${message}`, stack, { cause: thrown });
}

/** Renders the error object that a plugin prints on its standard output. */
export function renderError(error: CniError, cniVersion: string): string {
  const { code, message: msg, details } = error;
  return JSON.stringify(details === '' ? { cniVersion, code, msg } : { cniVersion, code, msg, details });
}
