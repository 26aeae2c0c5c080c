import type { OrphanOutcome, Swept } from '../../cloud/orphan-sweep.ts';
import type { IpamdMetrics } from '../observability/metrics.ts';

/** Values of the label of what was done about orphaned ENIs. */
const OUTCOMES: ReadonlyMap<OrphanOutcome['kind'], string> = new Map([
  ['removed', 'deleted'],
  ['later', 'later'],
  ['failed', 'refused'],
]);

/** Counts a sweep for orphaned ENIs, and shows what it found; `drifted` counts the nodes that differ from the cloud. */
export function countSweep(
  metrics: Pick<IpamdMetrics, 'audits' | 'auditTime' | 'orphanEnis' | 'driftedNodes' | 'orphanOutcomes'>,
  swept: Swept<unknown>,
  drifted: number,
  tookMs: number,
): void {
  metrics.audits.inc({ outcome: swept.kind === 'done' ? 'done' : swept.why });
  metrics.auditTime.observeMs(tookMs);
  if (swept.kind !== 'done') return;
  metrics.orphanEnis.set(swept.orphans.length);
  metrics.driftedNodes.set(drifted);
  for (const { kind } of swept.outcomes.values()) {
    const outcome = OUTCOMES.get(kind);
    if (outcome !== undefined) metrics.orphanOutcomes.inc({ outcome });
  }
}
