import { measureWebhook, wrongBodies } from '../test/foreign-input/measure-servers.ts';
import { type BenchRow, benchRow } from './row.ts';

/** Memory limit of the webhook's manifest. */
const LIMIT_MIB = 256;
const ROUNDS = 5;

/** Measures the most memory that the webhook takes while it gets the largest bodies of wrong items, four at once. */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const bodies = wrongBodies();
  const { peakMib, statuses } = await measureWebhook(bodies, ROUNDS);
  const answers = [...statuses.values()].reduce((sum, count) => sum + count, 0);
  return [
    benchRow({
      suite: 'foreign-input',
      case: 'webhook-peak',
      ours: Math.round(peakMib),
      peer: LIMIT_MIB,
      peerName: 'memory limit',
      unit: 'MiB',
      extra: `${answers} bodies of 1 MiB of wrong items, ${bodies.length} kinds`,
    }),
  ];
}
