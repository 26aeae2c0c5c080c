import type { Stream } from '../command.ts';

/** A whole terminal, drawn in place. */
export type Screen = {
  /** Shows lines from the top; each must fit the width. */
  draw(lines: readonly string[]): void;
  /** Brings back what was there before. Idempotent. */
  close(): void;
  [Symbol.dispose](): void;
};

/**
 * Takes the terminal's alternate screen and hides the cursor; the owner must close it, whatever happens.
 * @see xterm control sequences, DECSET 1049, 25 and 2026
 */
export function openScreen(stdout: Pick<Stream, 'write'>): Screen {
  let isOpen = true;
  stdout.write('\u001b[?1049h\u001b[?25l\u001b[2J');
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    stdout.write('\u001b[?25h\u001b[?1049l');
  };
  return {
    draw: (lines) => {
      if (!isOpen) return;
      // Line by line over the old frame, in one write: nothing flickers. No newline after the last, which would scroll.
      const body = lines.map((line) => `${line}\u001b[K`).join('\r\n');
      stdout.write(`\u001b[?2026h\u001b[H${body}\u001b[J\u001b[?2026l`);
    },
    close,
    [Symbol.dispose]: close,
  };
}
