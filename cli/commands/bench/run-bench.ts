import { createUnnamedNetns, NetnsError, warmThreadPool } from '../../../netlink/netns.ts';
import type { Request } from '../../../netlink/request.ts';
import { openRtnetlinkIn } from '../../../netlink/rtnetlink.ts';
import { AF_INET } from '../../../netlink/uapi/netlink.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { latencyText } from '../../agent/duration-text.ts';
import { openOpsClient } from '../../agent/ops-client.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { openProgress } from '../../output/progress.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { findListener } from '../doctor/read-processes.ts';
import { buildAgentPool } from '../pool/build-agent-pool.ts';
import { countUses } from '../pool/pool-view.ts';
import { printView } from '../pool/print-view.ts';
import type { RenderOptions } from '../pool/render-pool.ts';
import type { BenchArgs } from './arguments.ts';
import { benchPods, type PodBench, sweepLeftovers } from './bench-pods.ts';
import { cpuMs, ownPid } from './process-times.ts';

/** Limits of a run: larger numbers do not make the results more exact. */
const MAX_COUNT = 1_000;
const MAX_ROUTES = 100_000;

/**
 * Runs `bench` on this node. @throws UserError USAGE, NO_AGENT, FORBIDDEN, REFUSED; the signal's reason when interrupted
 */
export async function run(args: BenchArgs, context: CommandContext): Promise<ExitCode> {
  const { count, reserve, routes, output } = args;
  checkNumber('--count', count, MAX_COUNT);
  checkNumber('--reserve', reserve, Number.MAX_SAFE_INTEGER);
  checkNumber('--routes', routes, MAX_ROUTES);
  if (!context.isRoot)
    throw new UserError('FORBIDDEN', 'bench makes network namespaces, which is for root only', 'run as root');
  await warmThreadPool();
  using client = await openOpsClient(context.global);
  const swept = await sweepLeftovers(client, context);
  const progress = openProgress(context);
  if (swept > 0) progress.show(`removed ${swept} leftovers of a run that was killed`);
  if (!args.force) await refuseWhenScarce(client, count, reserve);
  const onPod = (done: number) => progress.show(`sandbox ${done} of ${count}`);
  try {
    const report = await measure({ client, pid: ownPid(), context, onPod }, args);
    progress.clear();
    context.signal.throwIfAborted();
    await printView(output, context, report, (options) => renderBench(report, options));
    return EXIT.ok;
  } catch (error) {
    throw error instanceof NetnsError ? noNamespace(error) : error;
  } finally {
    progress.clear();
  }
}

async function measure(bench: PodBench, { count, routes }: BenchArgs): Promise<BenchReport> {
  const { context, pid } = bench;
  const agentPid = findListener(context.global.socket);
  const before = agentPid === undefined ? undefined : cpuMs(agentPid);
  const { addMs, delMs } = await benchPods(bench, count);
  const after = agentPid === undefined ? undefined : cpuMs(agentPid);
  const agentCpu = before === undefined || after === undefined || addMs.length === 0 ? undefined : after - before;
  context.signal.throwIfAborted();
  const netlink = routes === 0 ? undefined : benchNetlink(routes, context.clock);
  const ownMs = cpuMs(pid);
  const figures = {
    add: computeFigures(addMs),
    del: computeFigures(delMs),
    agentCpuMs: agentCpu === undefined ? undefined : agentCpu / addMs.length,
    ownCpuMs: ownMs,
    routeReplace: computeFigures(netlink?.replaceMs ?? []),
    routeDump: computeFigures(netlink?.dumpMs ?? []),
  };
  return {
    ...withoutMissing(figures),
    routes,
    routeAddMs: eachMs(netlink?.addMs, routes),
    routeDeleteMs: eachMs(netlink?.deleteMs, routes),
  };
}

/** Returns the time for one of `count` items, to the microsecond. */
function eachMs(ms: number | undefined, count: number): number {
  return Math.round(((ms ?? 0) * 1_000) / Math.max(1, count)) / 1_000;
}

async function refuseWhenScarce(
  client: Awaited<ReturnType<typeof openOpsClient>>,
  count: number,
  reserve: number,
): Promise<void> {
  const { addresses } = buildAgentPool(await client.pool(), '');
  const v4 = addresses.filter(({ family }) => family === 4);
  const { free } = countUses(v4.length === 0 ? addresses : v4);
  if (free >= count + reserve) return;
  const message = `${free} addresses are free; ${count} sandboxes and a reserve of ${reserve} need ${count + reserve}`;
  throw new UserError('REFUSED', message, 'fewer with --count, or --force if Pods may wait');
}

type Defined<T> = { readonly [K in keyof T]?: Exclude<T[K], undefined> };

/** Removes undefined fields: what was not measured is left out of the document. */
function withoutMissing<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}

function checkNumber(name: string, value: number, max: number): void {
  if (Number.isInteger(value) && value >= 0 && value <= max) return;
  throw new UserError(
    'USAGE',
    `${name} ${value}: expected a whole number from 0 to ${max}`,
    'see tke-eni bench --help',
  );
}

function noNamespace(error: NetnsError): UserError {
  const next = 'it needs CAP_SYS_ADMIN, as root on the host and in the privileged container of the agent';
  return new UserError('FORBIDDEN', error.message, next, { cause: error });
}

/** Durations of netlink requests, milliseconds. */
type NetlinkTimes = {
  readonly routes: number;
  /** Adding all routes in one batch. */
  readonly addMs: number;
  /** Replacing each route, one request at a time. */
  readonly replaceMs: readonly number[];
  /** Reading all routes. */
  readonly dumpMs: readonly number[];
  readonly deleteMs: number;
};

const TABLE = 4001;
const DUMPS = 10;

/**
 * Writes, reads and deletes `count` routes in a network namespace of its own, which is deleted afterwards.
 * @throws NetlinkError, NetnsError
 */
function benchNetlink(count: number, clock: Pick<Clock, 'monotonicMs'>): NetlinkTimes {
  using netns = createUnnamedNetns();
  using rtnetlink = openRtnetlinkIn(netns);
  rtnetlink.link.add({ kind: 'bridge', ifname: 'bench0', up: true });
  const oif = rtnetlink.link.list().find(({ ifname }) => ifname === 'bench0')?.ifindex ?? 0;
  const timed = (work: () => unknown): number => {
    const startMs = clock.monotonicMs();
    work();
    return clock.monotonicMs() - startMs;
  };
  const specs = Array.from({ length: count }, (_, index) => ({
    dst: `10.${(index >> 16) & 0xff}.${(index >> 8) & 0xff}.${index & 0xff}/32`,
    oif,
    table: TABLE,
  }));
  const batch = (verb: 'add' | 'delete') => specs.map((spec): Request => ({ object: 'route', verb, spec }));
  const addMs = timed(() => rtnetlink.execute(batch('add'), { stopOnError: true }));
  const replaceMs = specs.map((spec) => timed(() => rtnetlink.route.replace(spec)));
  const dumpMs = Array.from({ length: DUMPS }, () =>
    timed(() => rtnetlink.route.list({ family: AF_INET, table: TABLE })),
  );
  const deleteMs = timed(() => rtnetlink.execute(batch('delete'), { stopOnError: true }));
  return { routes: count, addMs, replaceMs, dumpMs, deleteMs };
}

/** Results of a benchmark run. */
type BenchReport = {
  readonly add?: Figures;
  readonly del?: Figures;
  /** CPU time of the agent for one ADD with its DEL, milliseconds; absent where its process was not found. */
  readonly agentCpuMs?: number;
  /** Total CPU time of this program, milliseconds. */
  readonly ownCpuMs?: number;
  readonly routes: number;
  readonly routeReplace?: Figures;
  readonly routeDump?: Figures;
  /** Time for one route, where all are added in one batch. */
  readonly routeAddMs: number;
  readonly routeDeleteMs: number;
};

type Row = { readonly what: string; readonly figures: Figures };

/** Renders a report: one table row for each measured operation, then batch times and CPU times. */
export function renderBench(report: BenchReport, options: RenderOptions): string {
  const rows: readonly Row[] = [
    ...rowOf('ADD', report.add),
    ...rowOf('DEL', report.del),
    ...rowOf('route replace', report.routeReplace),
    ...rowOf(`dump of ${report.routes} routes`, report.routeDump),
  ];
  const lines = [
    report.routes === 0
      ? ''
      : `batch of ${report.routes} routes: ${ms(report.routeAddMs)} each to add, ${ms(report.routeDeleteMs)} to delete\n`,
    report.agentCpuMs === undefined ? '' : `CPU of the agent: ${ms(report.agentCpuMs)} for one ADD and DEL\n`,
    report.ownCpuMs === undefined ? '' : `CPU of this program: ${ms(report.ownCpuMs)}\n`,
  ];
  return `${renderTable(rows, COLUMNS, options)}\n${lines.join('')}`;
}

function rowOf(what: string, figures: Figures | undefined): readonly Row[] {
  return figures === undefined ? [] : [{ what, figures }];
}

function ms(value: number): string {
  return latencyText(value * 1_000);
}

function column(title: string, of: (figures: Figures) => string): Column<Row> {
  return { title, text: ({ figures }) => of(figures), align: 'right' };
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'WHAT', text: ({ what }) => what },
  column('TIMES', ({ count }) => `${count}`),
  column('MEDIAN', ({ medianMs }) => ms(medianMs)),
  column('P90', ({ p90Ms }) => ms(p90Ms)),
  column('P99', ({ p99Ms }) => ms(p99Ms)),
  column('MAX', ({ maxMs }) => ms(maxMs)),
];

/** Summary of measured durations, in milliseconds to the microsecond. */
type Figures = {
  readonly count: number;
  readonly medianMs: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
};

/**
 * Returns count, quantiles and maximum of durations; undefined for an empty list. A quantile is a measured value: the
 * smallest one such that the given share of all values is at or below it (nearest-rank method).
 */
export function computeFigures(durationsMs: readonly number[]): Figures | undefined {
  const sorted = durationsMs.toSorted((a, b) => a - b);
  const maximum = sorted.at(-1);
  if (maximum === undefined) return undefined;
  const at = (quantile: number) => rounded(sorted[Math.max(0, Math.ceil(quantile * sorted.length) - 1)] ?? maximum);
  return { count: sorted.length, medianMs: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99), maxMs: rounded(maximum) };
}

function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
