import type { RouteKind } from '../cloud/cloud.ts';
import { measureRules } from '../test/cloud-controller-manager/ingresses/measure-rules.ts';
import { measureSweep } from '../test/cloud-controller-manager/lifecycle/measure-sweep.ts';
import { measureRoutes } from '../test/cloud-controller-manager/routes/measure-routes.ts';
import { measureHandover } from '../test/cloud-controller-manager/services/measure-handover.ts';
import { measureServices, type ServicesReport } from '../test/cloud-controller-manager/services/measure-services.ts';
import { measureBalancersProcess } from './ccm/measure-balancers.ts';
import { measureCcmProcess } from './ccm/measure-process.ts';
import { type BenchRow, benchRow, median } from './row.ts';

const NODES = 5_000;
const IDS_PER_CALL = 100;
const ROUTES = 1_000;
const SERVICES = 1_000;
const ENDPOINTS = 50;
const CHANGES = 20;
/** A listener has 50 rules. */
const [INGRESSES, RULES_EACH] = [20, 50];
/** Endpoints are followed within this time. */
const LATENCY_BOUND_MS = 5_000;
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
    await rulesRow(),
    await handoverRow(),
    ...(await serviceRows()),
  ];
}

/** Measures load balancers of many Services: on the virtual clock, then the memory of a packaged process. */
async function serviceRows(): Promise<readonly BenchRow[]> {
  const report = await measureServices(SERVICES, ENDPOINTS, CHANGES);
  const row = (name: string, ours: number, peer: number, unit: BenchRow['unit'], extra: string): BenchRow =>
    benchRow({ suite: 'ccm', case: name, ours, peer, peerName: 'bound', unit, extra });
  const { rssMib, anonMib, peakMib } = await measureBalancersProcess(SERVICES, ENDPOINTS);
  const of = `${SERVICES.toLocaleString('en')} Services of ${ENDPOINTS} Pods each`;
  return [
    row(
      'services-1000-cold',
      report.coldSeconds,
      report.boundSeconds,
      's',
      `${of}, until each is published; bound: ${report.boundForm}`,
    ),
    row(
      'services-1000-restart',
      report.restartWrites,
      0,
      'writes',
      `changing calls in a quarter of an hour after a restart; ${report.restartCalls} reads`,
    ),
    row(
      'services-1000-change',
      report.changeWrites,
      1,
      'writes',
      'changing calls for a Pod that became ready; the most of 20',
    ),
    latencyRow(
      'endpoint-to-traffic',
      report.toTrafficMs,
      'from the slice to the registration; of it a second in which Pods are gathered',
    ),
    latencyRow(
      'deletion-to-weight-0',
      report.toDrainMs,
      'from the deletionTimestamp to the weight in force; of it the task of the cloud, 500 to 2,000',
    ),
    row(
      'services-1000-rss',
      rssMib,
      RSS_BOUND_MIB,
      'MiB',
      `VmRSS of the packaged process with ${of}; RssAnon ${anonMib.toFixed(0)}; peak ${peakMib.toFixed(0)} MiB`,
    ),
  ];
}

/** Measures the rules of many Ingresses on one load balancer. */
async function rulesRow(): Promise<BenchRow> {
  const { writes, fewestWrites, seconds, restartWrites, changeWrites } = await measureRules(INGRESSES, RULES_EACH);
  return benchRow({
    suite: 'ccm',
    case: 'rules-1000',
    ours: writes,
    peer: fewestWrites,
    peerName: 'bound',
    unit: 'writes',
    extra: `changing calls for ${INGRESSES} Ingresses of ${RULES_EACH} rules on one load balancer, in ${seconds.toFixed(0)} s of the clock; ${restartWrites} after a restart, ${changeWrites} for another path`,
  });
}

/** Measures how soon a new leader drains what ended while nobody led. */
async function handoverRow(): Promise<BenchRow> {
  const size = { services: 100, podsEach: 5, ending: 20, nodes: 20 };
  const { firstSeconds, lastSeconds, callsBefore } = await measureHandover(size);
  const calls = Object.values(callsBefore).reduce((sum, count) => sum + count, 0);
  return benchRow({
    suite: 'ccm',
    case: 'leader-change-to-weight-0',
    ours: firstSeconds,
    peer: LATENCY_BOUND_MS / 1_000,
    peerName: 'bound',
    unit: 's',
    extra: `on the virtual clock, from the start of the new leader to the first weight 0 in force, after ${calls} calls of the cloud; ${lastSeconds.toFixed(1)} s to the last of ${size.ending} Pods that ended meanwhile, of ${size.services} Services with ${size.podsEach} Pods each`,
  });
}

function latencyRow(name: string, samples: ServicesReport['toDrainMs'], what: string): BenchRow {
  const sorted = samples.toSorted((one, other) => one - other);
  const p99 = sorted[Math.ceil(0.99 * sorted.length) - 1] ?? Number.NaN;
  const extra = `p50 of ${samples.length} on the virtual clock, ${what}; p99 ${p99} ms`;
  return benchRow({
    suite: 'ccm',
    case: name,
    ours: median(samples),
    peer: LATENCY_BOUND_MS,
    peerName: 'bound',
    unit: 'ms',
    extra,
  });
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
