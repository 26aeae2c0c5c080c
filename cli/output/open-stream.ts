import { writeSync } from 'node:fs';
import type { Stream } from '../command.ts';

/** What a stream is made of. */
export type StreamParts = {
  readonly fd: number;
  readonly isTerminal: boolean;
  readonly isColored: boolean;
  /** Of the terminal; asked for each time, for it may be resized. */
  readonly size: () => { readonly columns: number; readonly rows: number } | undefined;
  /** Value of COLUMNS, for what is no terminal. */
  readonly columnsWanted: string | undefined;
  /** Called once when nobody reads any more, as with `| head`. */
  readonly onClosed: () => void;
};

/**
 * Opens a stream that writes at once: what is printed is out before the next line of code, and Node's own streams, which
 * take milliseconds to make, are not needed. Silent when the reader has gone.
 */
export function openStream(parts: StreamParts): Stream {
  const { fd, isTerminal, isColored, size, columnsWanted, onClosed } = parts;
  const wanted = Number(columnsWanted);
  let isClosed = false;
  return {
    isTerminal,
    isColored,
    columns: () => size()?.columns ?? (Number.isInteger(wanted) && wanted > 0 ? wanted : DEFAULT_COLUMNS),
    rows: () => size()?.rows ?? DEFAULT_ROWS,
    write: (text) => {
      if (isClosed || writeAll(fd, text)) return;
      isClosed = true;
      onClosed();
    },
  };
}

const DEFAULT_COLUMNS = 160;
const DEFAULT_ROWS = 50;

/** Writes all of a text; false when nobody reads. */
function writeAll(fd: number, text: string): boolean {
  const bytes = Buffer.from(text, 'utf8');
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(fd, bytes, at, bytes.length - at);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      // A terminal that hung up answers EIO.
      if (code === 'EPIPE' || code === 'EIO') return false;
      if (code !== 'EAGAIN') throw error;
      // Somebody left the pipe or terminal non-blocking: wait as a blocking one would.
      Atomics.wait(PAUSE, 0, 0, PAUSE_MS);
    }
  }
  return true;
}

const PAUSE_MS = 1;
const PAUSE = new Int32Array(new SharedArrayBuffer(4));
