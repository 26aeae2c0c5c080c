import { writeSync } from 'node:fs';
import { showByteText } from '../../runtime/byte-text.ts';
import type { Stream } from '../command/command.ts';

/** What a stream needs. */
type StreamOptions = {
  readonly fd: number;
  readonly isTerminal: boolean;
  readonly isColored: boolean;
  /** Size of the terminal; read at each use, since the terminal may be resized. */
  readonly size: () => { readonly columns: number; readonly rows: number } | undefined;
  /** Value of the variable COLUMNS, for output that is not a terminal. */
  readonly columnsVariable: string | undefined;
  /** Called once when the reader has closed the pipe, as with `| head`. */
  readonly onClosed: () => void;
};

/**
 * Opens a stream that writes synchronously: a text is written before the next statement runs. Node's own streams are
 * not used: creating them takes milliseconds. After the reader has closed the pipe nothing is written.
 */
export function openStream(options: StreamOptions): Stream {
  const { fd, isTerminal, isColored, size, columnsVariable, onClosed } = options;
  const fixedColumns = Number(columnsVariable);
  let isClosed = false;
  const writeBytes = (bytes: Uint8Array) => {
    if (isClosed || writeAll(fd, bytes)) return;
    isClosed = true;
    onClosed();
  };
  return {
    isTerminal,
    isColored,
    columns: () =>
      size()?.columns ?? (Number.isInteger(fixedColumns) && fixedColumns > 0 ? fixedColumns : DEFAULT_COLUMNS),
    rows: () => size()?.rows ?? DEFAULT_ROWS,
    write: (text) => writeBytes(Buffer.from(showByteText(text), 'utf8')),
    writeBytes,
  };
}

const DEFAULT_COLUMNS = 160;
const DEFAULT_ROWS = 50;

/** Writes all bytes; returns false when the reader has closed the pipe. */
function writeAll(fd: number, bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(fd, bytes, at, bytes.length - at);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      // A terminal that was closed returns EIO.
      if (code === 'EPIPE' || code === 'EIO') return false;
      if (code !== 'EAGAIN') throw error;
      // Another program set the pipe or terminal to non-blocking mode: wait as a blocking write would.
      Atomics.wait(PAUSE, 0, 0, PAUSE_MS);
    }
  }
  return true;
}

const PAUSE_MS = 1;
const PAUSE = new Int32Array(new SharedArrayBuffer(4));
