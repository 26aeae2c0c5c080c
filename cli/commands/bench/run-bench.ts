import { NetnsError, warmThreadPool } from '../../../netlink/netns.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { openOpsClient } from '../../agent/ops-client.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { openProgress } from '../../output/progress.ts';
import { findListener } from '../doctor/read-processes.ts';
import { buildAgentPool } from '../pool/build-agent-pool.ts';
import { countUses } from '../pool/pool-view.ts';
import { printView } from '../pool/print-view.ts';
import type { BenchArgs } from './arguments.ts';
import { benchNetlink } from './bench-netlink.ts';
import { benchPods, type PodBench, sweepLeftovers } from './bench-pods.ts';
import { cpuMs, ownPid } from './process-times.ts';
import { type BenchReport, computeFigures, renderBench } from './render-bench.ts';

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
