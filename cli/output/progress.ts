import { plainText } from '../../runtime/plain-text.ts';
import type { CommandContext } from '../command/command.ts';
import { cutText } from './cell-text.ts';

/** One line of standard error that shows the progress of long work. */
export type Progress = {
  /** Replaces the shown text. */
  show(text: string): void;
  /** Erases the line; the next text shows it again. */
  clear(): void;
};

/**
 * Opens a progress line. Nothing is written where standard error is not a terminal, or a terminal that cannot move the
 * cursor (TERM=dumb): redrawn lines are useless in a log.
 */
export function openProgress({ stderr, env }: Pick<CommandContext, 'stderr' | 'env'>): Progress {
  if (!stderr.isTerminal || env['TERM'] === 'dumb') return { show: () => {}, clear: () => {} };
  let isShown = false;
  return {
    show: (text) => {
      isShown = true;
      stderr.write(`\r${cutText(plainText(text), stderr.columns() - 1)}${CLEAR_TO_END}`);
    },
    clear: () => {
      if (isShown) stderr.write(`\r${CLEAR_TO_END}`);
      isShown = false;
    },
  };
}

/** Escape sequence that erases to the end of the line. @see ECMA-48 8.3.41 EL */
const CLEAR_TO_END = '\u001b[K';
