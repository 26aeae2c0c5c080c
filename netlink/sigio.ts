import { isMainThread } from 'node:worker_threads';
import { fcntl } from './libc.ts';

const F_GETFL = 3;
const F_SETFL = 4;
const F_SETOWN = 8;
const O_ASYNC = 0o20000;

/** Drains of all watched descriptors: a signal does not say which of them is readable. */
const drains = new Set<() => void>();
let isListening = false;

/**
 * Calls `drain` whenever `fd` becomes readable, without a thread and without polling; it must read until EAGAIN.
 * Does not keep the process alive. @returns a function that ends it. @throws LibcError. @see fcntl(2) O_ASYNC
 */
export function watchReadable(fd: number, drain: () => void): () => void {
  if (!isMainThread) {
    throw new TypeError('netlink monitors need signals, which reach the main thread only');
  }
  drains.add(drain);
  listenOnce();
  fcntl(fd, F_SETOWN, process.pid);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) | O_ASYNC);
  return () => {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) & ~O_ASYNC);
    drains.delete(drain);
  };
}

/**
 * The listener is there before the first O_ASYNC and stays for good: a signal may be under way when the last
 * descriptor goes, and without a handler SIGIO kills the process.
 */
function listenOnce(): void {
  if (!isListening) {
    isListening = true;
    process.on('SIGIO', () => {
      for (const drain of [...drains]) {
        drain();
      }
    });
  }
}
