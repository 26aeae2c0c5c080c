import { measureSweep } from '../test/cloud-controller-manager/lifecycle/measure-sweep.ts';
import { type BenchRow, benchRow } from './row.ts';

const NODES = 5_000;
const IDS_PER_CALL = 100;

/** Measures the cloud controller manager on the virtual clock, in process, against the fewest possible calls. */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const { readyCalls, calls, sweeps } = await measureSweep(NODES);
  return [
    benchRow({
      suite: 'ccm',
      case: 'sweep-5000',
      ours: calls,
      peer: NODES / IDS_PER_CALL,
      peerName: 'bound',
      unit: 'calls',
      extra: `most of ${sweeps} sweeps over 5,000 Nodes that are not ready; ${readyCalls} while all are ready`,
    }),
  ];
}
