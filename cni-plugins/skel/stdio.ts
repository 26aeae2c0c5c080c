import { readSync, writeSync } from 'node:fs';
import { CNI_CODE } from '../../agent/api/cni-code.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { CniError } from './error.ts';

/**
 * Reads a descriptor to its end. Synchronous, because there is nothing else to do before the conf is read, and a stream
 * costs milliseconds at start.
 *
 * @throws CniError code 5 when it cannot be read, 6 above MAX_CONF_BYTES.
 */
export function readAll(fd: number): string {
  const chunks: Buffer[] = [];
  let total = 0;
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const bytes = retryWhileBusy(() => readSync(fd, chunk, 0, CHUNK_BYTES, null), READ_WAIT_MS);
    if (bytes === 0) return Buffer.concat(chunks).toString('utf8');
    chunks.push(chunk.subarray(0, bytes));
    total += bytes;
    if (total > MAX_CONF_BYTES) {
      throw new CniError(CNI_CODE.decode, `stdin: a network configuration above ${MAX_CONF_BYTES} bytes`);
    }
  }
}

/** Writes a whole text to a descriptor, in several pieces if a pipe requires that. @throws CniError code 5. */
export function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text, 'utf8');
  for (let at = 0; at < bytes.length; ) {
    const offset = at;
    at += retryWhileBusy(() => writeSync(fd, bytes, offset, bytes.length - offset), WRITE_WAIT_MS);
  }
}

/** Repeats a read or write that returns EAGAIN: the runtime may have left the descriptor non-blocking. */
function retryWhileBusy(attempt: () => number, boundMs: number): number {
  for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
    try {
      return attempt();
    } catch (cause) {
      const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
      if (code === 'EOF') return 0;
      if (code !== 'EAGAIN' || waitedMs >= boundMs) {
        const reason = messageOf(cause);
        throw new CniError(CNI_CODE.io, `standard input or output: ${reason}`, '', { cause });
      }
      Atomics.wait(PAUSE, 0, 0, PAUSE_MS);
    }
  }
}

const CHUNK_BYTES = 64 * 1024;
/** Largest conf. GC lists every attachment of a node, some 100 bytes each: enough for a hundred thousand. */
const MAX_CONF_BYTES = 16 * 1024 * 1024;
const READ_WAIT_MS = 10_000;
const WRITE_WAIT_MS = 10_000;
const PAUSE_MS = 1;
const PAUSE = new Int32Array(new SharedArrayBuffer(4));
