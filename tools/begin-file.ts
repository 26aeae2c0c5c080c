import type { TestFn } from 'ava';
import { registerWith } from './current-test.ts';
import { sharedAva } from './load-bundled-ava.ts';
import { changesBetween, type ProcessState, readProcessState } from './process-state.ts';
import { recordCost } from './record-cost.ts';

/** What AVA listens to for the file that runs. */
const HEARD_BY_AVA = ['message', 'error', 'uncaughtException', 'unhandledRejection', 'rejectionHandled'];

/** A process that has more memory than this runs no other file, bytes. */
const MOST_BYTES = 400 * 2 ** 20;

/** AVA replaces it for each file. */
const { exit } = process;

let files = 0;
let before: ProcessState = new Map();

/**
 * Has AVA's runner of this file take what is registered, and counts what the file costs. Where processes are shared, this one
 * asks for another file when nothing of the last is left. AVA loads this before each test file (ava.config.js).
 */
export default async function beginFile(): Promise<void> {
  process.on('exit', recordCost);
  if (sharedAva === undefined) return;
  files += 1;
  const ava: { default: TestFn; registerCompletionHandler: (done: () => void) => void } = await import(
    `${sharedAva.main}?file=${files}`
  );
  registerWith(ava.default);
  const { worker } = sharedAva;
  // Once for all files; and then AVA, which has said that the file is over, waits for the process to end by itself.
  if (files === 1) ava.registerCompletionHandler(() => process.once('beforeExit', async () => await endFile(worker)));
  before = readProcessState(HEARD_BY_AVA);
}

/** Nothing is left in the event loop: loads AVA's worker once more, unless the file has changed the process. */
async function endFile(worker: string): Promise<void> {
  if (process.memoryUsage.rss() > MOST_BYTES) return;
  if (changesBetween(before, readProcessState(HEARD_BY_AVA)).length > 0) return;
  recordCost();
  process.off('exit', recordCost);
  for (const name of HEARD_BY_AVA) process.removeAllListeners(name);
  process.exit = exit;
  await import(`${worker}?file=${files}`);
}
