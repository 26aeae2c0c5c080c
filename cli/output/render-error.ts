import { plainText } from '../../runtime/plain-text.ts';
import type { UserError } from '../../runtime/user-error.ts';
import { paint } from './color.ts';

/** Renders an error for standard error: what failed, then what to do next. */
export function renderError(error: Pick<UserError, 'message' | 'next'>, isColored: boolean): string {
  const message = error.message.split('\n').map(plainText).join('\n');
  const next = error.next === '' ? '' : `  ${paint('next:', 'cyan', isColored)} ${plainText(error.next)}\n`;
  return `${paint('tke-eni:', 'red', isColored)} ${message}\n${next}`;
}

/** Renders a warning for standard error, in one line. */
export function renderWarning(text: string, isColored: boolean): string {
  return `${paint('tke-eni:', 'yellow', isColored)} ${plainText(text)}\n`;
}
