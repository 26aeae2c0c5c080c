import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { CNI_CODE } from '../../agent/api/cni-code.ts';
import { ByteCollector } from '../../runtime/byte-collector.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { CniError } from './error.ts';

/**
 * Reads a descriptor to its end. Synchronous, because there is nothing else to do before the conf is read, and a stream
 * costs milliseconds at start.
 *
 * @throws CniError code 5 when it cannot be read or does not end in time, 6 above MAX_CONF_BYTES or in too many pieces.
 */
export function readAll(fd: number): string {
  const conf = new ByteCollector(MAX_CONF_BYTES);
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const untilMs = performance.now() + READ_WAIT_MS;
  const waiting = reopenPipe(fd);
  try {
    for (;;) {
      const bytes = retryWhileBusy(() => readSync(waiting, chunk, 0, CHUNK_BYTES, null), untilMs);
      if (bytes === 0) return conf.take().toString('utf8');
      const why = conf.append(chunk.subarray(0, bytes));
      if (why === 'too-many-bytes')
        throw new CniError(CNI_CODE.decode, `stdin: a network configuration above ${MAX_CONF_BYTES} bytes`);
      if (why !== undefined) throw new CniError(CNI_CODE.decode, 'stdin: a network configuration in too many pieces');
    }
  } finally {
    if (waiting !== fd) closeSync(waiting);
  }
}

/** Returns a descriptor of the same pipe that does not block: a writer that stops would hold the program forever. */
function reopenPipe(fd: number): number {
  try {
    if (fstatSync(fd).isFIFO()) return openSync(`/proc/self/fd/${fd}`, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    // There is no /proc, or the pipe is another user's: the read blocks.
  }
  return fd;
}

/** Writes a whole text to a descriptor, in several pieces if a pipe requires that. @throws CniError code 5. */
export function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text, 'utf8');
  const untilMs = performance.now() + WRITE_WAIT_MS;
  for (let at = 0; at < bytes.length; ) {
    const offset = at;
    at += retryWhileBusy(() => writeSync(fd, bytes, offset, bytes.length - offset), untilMs);
  }
}

/** Repeats a read or write that returns EAGAIN, until a time of the monotonic clock. */
function retryWhileBusy(attempt: () => number, untilMs: number): number {
  for (;;) {
    try {
      return attempt();
    } catch (cause) {
      const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
      if (code === 'EOF') return 0;
      if (code !== 'EAGAIN' || performance.now() >= untilMs) {
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
/** Longest wait for all of standard input together. */
const READ_WAIT_MS = 30_000;
const WRITE_WAIT_MS = 10_000;
const PAUSE_MS = 1;
const PAUSE = new Int32Array(new SharedArrayBuffer(4));
