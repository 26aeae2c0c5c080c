import { setImmediate } from 'node:timers/promises';

/**
 * Turns of the event loop until the end of a connection is known as the end of its calls, and one more. The first turn
 * ends the phase in which this process is, the second reads the socket, the others end session and stream of HTTP/2.
 */
const TURNS = 5;

/** Resolves when input that the kernel has by now was read: a caller that hung up before is known to be gone. */
export async function readPendingInput(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await setImmediate();
}
