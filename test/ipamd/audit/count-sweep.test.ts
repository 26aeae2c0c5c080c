import test from 'ava';
import type { OrphanOutcome } from '../../../cloud/orphan-sweep.ts';
import { countSweep } from '../../../ipamd/audit/count-sweep.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

test('countSweep: counts how it ended and what was done about orphans, and shows what was found', async (t) => {
  const metrics = createIpamdMetrics(new VirtualClock(), { release: 'test' });
  const outcomes = new Map<string, OrphanOutcome>([
    ['eni-1', { kind: 'removed' }],
    ['eni-2', { kind: 'later', why: 'dry run' }],
    ['eni-3', { kind: 'spared' }],
    ['eni-4', { kind: 'waiting' }],
  ]);
  countSweep(metrics, { kind: 'done', own: [], orphans: ['eni-1'], areTooMany: false, outcomes }, 2, 1_500);
  countSweep(metrics, { kind: 'skipped', why: 'NotSynced' }, 0, 500);
  const lines = (await metrics.registry.metrics()).split('\n');
  const shown = /_(audits_total|audit_seconds_sum|orphan_enis|drifted_nodes|orphan_outcomes_total)[ {]/;
  t.deepEqual(
    lines
      .filter((line) => !line.startsWith('#') && shown.test(line))
      .map((line) => line.slice('tke_eni_ipamd_'.length)),
    [
      'audits_total{outcome="done"} 1',
      'audits_total{outcome="NotSynced"} 1',
      'audit_seconds_sum 2',
      'orphan_enis 1',
      'drifted_nodes 2',
      'orphan_outcomes_total{outcome="deleted"} 1',
      'orphan_outcomes_total{outcome="later"} 1',
    ],
  );
});
