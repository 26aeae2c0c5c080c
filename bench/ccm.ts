import type { RouteKind } from '../cloud/cloud.ts';
import { measureSweep } from '../test/cloud-controller-manager/lifecycle/measure-sweep.ts';
import { measureRoutes } from '../test/cloud-controller-manager/routes/measure-routes.ts';
import { measureCcmProcess } from './ccm/measure-process.ts';
import { type BenchRow, benchRow } from './row.ts';

const NODES = 5_000;
const IDS_PER_CALL = 100;
const ROUTES = 1_000;
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
    await routesRow('routes-1000', 'global', 'global routes of the VPC'),
    await routesRow('routes-1000-table', 'table', 'a route table'),
    await routesRow('routes-1000-cluster', 'cluster', 'the route table of the TKE API, which takes one route a call'),
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

/** Measures the routes of Nodes that are there when the process starts. */
async function routesRow(name: string, kind: RouteKind, where: string): Promise<BenchRow> {
  const { calls, fewest, quietCalls, seconds } = await measureRoutes(kind, ROUTES);
  return benchRow({
    suite: 'ccm',
    case: name,
    ours: calls,
    peer: fewest,
    peerName: 'bound',
    unit: 'calls',
    extra: `1,000 Nodes get their routes in ${where}, in ${seconds.toFixed(0)} s of the clock; ${quietCalls} calls in an hour without a change`,
  });
}
