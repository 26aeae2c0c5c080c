import { egress } from './forwarding/measures.ts';
import { compact, measureCases, perPod } from './forwarding.ts';
import type { BenchRow } from './row.ts';

/** Measures whether egress depends on how many Pods a node has, in both rule modes. */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const cases = [...[30, 110, 250, 1_000].map(compact), perPod(250)];
  return await measureCases(cases, { egress }, 'forwarding-pods');
}
