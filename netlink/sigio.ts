import { isMainThread } from 'node:worker_threads';
import { fcntl } from './libc.ts';

const F_GETFL = 3;
const F_SETFL = 4;
const F_SETOWN = 8;
const O_ASYNC = 0o20000;

/** Drains of all watched descriptors: a signal does not say which of them is readable. */
const drains = new Set<() => void>();
let isListening = false;

/** A watched descriptor. */
export type Watch = {
  /** Stops the signals until `resume`: each costs time, and a caller that reads anyway needs none. */
  pause(): void;
  /** Starts the signals again; events from before must be read at that time or later. */
  resume(): void;
  /** Ends the watch. */
  end(): void;
};

/**
 * Calls `drain` whenever `fd` becomes readable, without a thread and without polling; `drain` must read until EAGAIN.
 * Does not keep the process alive. @throws LibcError. @see fcntl(2) O_ASYNC
 */
export function watchReadable(fd: number, drain: () => void): Watch {
  if (!isMainThread) {
    throw new TypeError('netlink monitors need signals, which reach the main thread only');
  }
  drains.add(drain);
  installHandler();
  fcntl(fd, F_SETOWN, process.pid);
  const resume = () => {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) | O_ASYNC);
  };
  const pause = () => {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) & ~O_ASYNC);
  };
  resume();
  return {
    pause,
    resume,
    end: () => {
      pause();
      drains.delete(drain);
    },
  };
}

/**
 * Installs the handler before the first O_ASYNC, for good: a signal may be pending when the last descriptor is closed,
 * and without a handler SIGIO kills the process.
 */
function installHandler(): void {
  if (!isListening) {
    isListening = true;
    process.on('SIGIO', () => {
      for (const drain of [...drains]) {
        drain();
      }
    });
  }
}
