import { CloudError } from './cloud-error.ts';
import { findErrorRule } from './error-table.ts';

/** What a failed call said. */
export type RawFailure = {
  readonly code: string;
  readonly action: string;
  readonly text: string;
  readonly requestId?: string;
};

/** Makes the CloudError of a failed call: what may be done about it comes from the error table. Pure. */
export function classifyError(failure: RawFailure, cause?: unknown): CloudError {
  const rule = findErrorRule(failure.code, failure.action);
  const scope = rule.scope === undefined ? {} : { scope: rule.scope };
  const { retry, afterMs, isAccountWide = false } = rule;
  return new CloudError({ ...failure, retry, afterMs, isAccountWide, ...scope }, { cause });
}
