import { measureSweep } from '../test/cloud-controller-manager/lifecycle/measure-sweep.ts';
import { measureCcmProcess } from './ccm/measure-process.ts';
import { type BenchRow, benchRow } from './row.ts';

const NODES = 5_000;
const IDS_PER_CALL = 100;
const RSS_BOUND_MIB = 200;

/**
 * Measures the cloud controller manager on the virtual clock, in process, against the fewest possible calls; then the
 * memory of one packaged process.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const { readyCalls, calls, sweeps } = await measureSweep(NODES);
  const { ready, notReady, peakMib, startSeconds } = await measureCcmProcess(NODES);
  const mib = (size: number): string => size.toFixed(0);
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
    benchRow({
      suite: 'ccm',
      case: 'rss-5000',
      ours: Math.max(ready.rssMib, notReady.rssMib),
      peer: RSS_BOUND_MIB,
      peerName: 'bound',
      unit: 'MiB',
      extra: `VmRSS of the packaged process with 5,000 Nodes, none of them ready; RssAnon ${mib(notReady.anonMib)}; all ready: ${mib(ready.rssMib)}, RssAnon ${mib(ready.anonMib)}; peak ${mib(peakMib)} MiB while all were initialised in ${mib(startSeconds)} s`,
    }),
  ];
}
