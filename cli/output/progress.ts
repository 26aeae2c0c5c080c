import type { CommandContext } from '../command.ts';
import { cutText, plainText } from './cell-text.ts';

/** Shows how far long work is, in one line of standard error. */
export type Progress = {
  /** Replaces what is shown. */
  show(text: string): void;
  /** Takes the line away; showing again brings it back. */
  clear(): void;
};

/**
 * Opens a progress line. Where standard error is no terminal, or one that moves no cursor (TERM=dumb), nothing is written: a
 * log of redrawn lines helps nobody.
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

/** @see ECMA-48 8.3.41 EL */
const CLEAR_TO_END = '\u001b[K';
