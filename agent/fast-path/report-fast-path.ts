import { join } from 'node:path';
import type { NodeEvents } from '../events/node-events.ts';
import { readNodeRecord } from '../journal/node-file.ts';
import { NODE_RECORD_FILE } from '../journal/node-record.ts';
import type { FastPathChoice } from './choose-fast-path.ts';

/**
 * Reports by event a fast path that cannot be had, and one that is another than the agent before this one had. Called before
 * the first plan of this agent is recorded. Never throws.
 */
export function reportFastPath({ wanted, mode, why }: FastPathChoice, stateDir: string, events: NodeEvents): void {
  if (why !== '') events.report('Warning', 'FastPathOff', `the fast path stays off: ${why}`);
  const before = recordedMode(stateDir);
  if (why !== '' || before === undefined || before === mode) return;
  events.report('Normal', 'FastPathChanged', `the fast path is ${mode} (--fast-path=${wanted}), and was ${before}`);
}

function recordedMode(stateDir: string): string | undefined {
  try {
    return readNodeRecord(join(stateDir, NODE_RECORD_FILE)).node.fastPath ?? 'off';
  } catch {
    // There is none yet, or one of another release.
    return undefined;
  }
}
