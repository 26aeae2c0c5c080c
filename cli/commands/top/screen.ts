import type { Stream } from '../../command/command.ts';

/** A whole terminal that is redrawn in place. */
type Screen = {
  /** Shows lines from the top; each must fit the width. */
  draw(lines: readonly string[]): void;
  /** Restores the previous screen. Idempotent. */
  close(): void;
  [Symbol.dispose](): void;
};

/**
 * Opens the terminal's alternate screen and hides the cursor. The caller must close it in any case.
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
      // Lines overwrite the old frame in one write, so nothing flickers. No newline after the last line: it would
      // scroll.
      const body = lines.map((line) => `${line}\u001b[K`).join('\r\n');
      stdout.write(`\u001b[?2026h\u001b[H${body}\u001b[J\u001b[?2026l`);
    },
    close,
    [Symbol.dispose]: close,
  };
}
