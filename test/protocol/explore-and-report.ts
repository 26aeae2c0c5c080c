import { setImmediate as yieldNow } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { type Exploration, explore, renderTrace } from './explore.ts';
import { protocolModel } from './protocol-model.ts';
import type { Setting } from './world.ts';

/** Far more than an exploration takes, and still an end. */
const MAX_TIMER_MS = 900_000;

/** Explores the protocol in a setting, and prints how much there was to see and what was found. */
export async function exploreAndReport(
  t: ExecutionContext,
  setting: Setting,
  maxStates?: number,
): Promise<Exploration> {
  t.timeout(MAX_TIMER_MS);
  // Exploring blocks this process: AVA must hear of the longer timeout before.
  await yieldNow();
  const started = process.cpuUsage();
  const exploration = explore(protocolModel(setting), maxStates);
  const { states, transitions, violation } = exploration;
  const seconds = (process.cpuUsage(started).user / 1e6).toFixed(1);
  t.log(`${states} states, ${transitions} transitions, ${seconds} s of CPU`);
  if (violation !== undefined) t.log(`${violation.steps.length} steps to a violation:\n${renderTrace(violation)}`);
  return exploration;
}
