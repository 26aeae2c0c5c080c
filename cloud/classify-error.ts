import { CloudError } from './cloud-error.ts';
import { findErrorRule } from './error-table.ts';

/** The facts of a failed call, not yet classified. */
type RawFailure = {
  readonly code: string;
  readonly action: string;
  readonly text: string;
  readonly requestId?: string;
};

/** Builds the CloudError of a failed call. The error table determines how the caller may react. */
export function classifyError(failure: RawFailure, cause?: unknown): CloudError {
  const rule = findErrorRule(failure.code, failure.action, failure.text);
  const scope = rule.scope === undefined ? {} : { scope: rule.scope };
  const { retry, afterMs, isAccountWide = false } = rule;
  return new CloudError({ ...failure, retry, afterMs, isAccountWide, ...scope }, { cause });
}
