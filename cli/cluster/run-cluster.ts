import type { OpenKubeClient } from '../../kube/open-client.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import type { Known } from '../node/node-facts.ts';
import { openCluster } from '../open-cluster.ts';
import { openProgress, type Progress } from '../output/progress.ts';
import { renderWarning } from '../output/render-error.ts';
import { printView } from '../pool/print-view.ts';
import type { ClusterArgs } from './arguments.ts';
import type { ClusterFacts } from './cluster-facts.ts';
import { findEniRows } from './find-eni-rows.ts';
import { findKept, isKeptWrong } from './find-kept.ts';
import { findLeaks, seenTwice } from './find-leaks.ts';
import { findNodeRows, totalsOf } from './find-node-rows.ts';
import { findSubnetRows } from './find-subnet-rows.ts';
import { lookAtCluster } from './look-at-cluster.ts';
import type { ClusterPart } from './read-cluster.ts';
import { renderEnis } from './render-enis.ts';
import { renderKept } from './render-kept.ts';
import { renderLeaks } from './render-leaks.ts';
import { renderNodes } from './render-nodes.ts';
import { renderSubnets } from './render-subnets.ts';

/** Timeout of a call: a page of a large cluster needs time, and a user waits. */
const CALL_MS = 30_000;
/** Calls per second. Large lists have some hundred pages, and the API server works some milliseconds on each. */
const QPS = 50;

/**
 * Runs `cluster`: prints a view of the cluster; changes nothing. @throws CliError NO_CLUSTER, FORBIDDEN, NO_CLOUD,
 * USAGE
 */
export async function run(args: ClusterArgs, context: CommandContext): Promise<ExitCode> {
  refuseOdd(args);
  const progress = openProgress(context);
  const client = await openClient(context);
  const look: ViewContext['look'] = (parts) => lookAtCluster(args, context, client, progress, parts);
  try {
    return await (VIEWS[args.view ?? 'nodes'] ?? showNodes)(args, { ...context, look, progress });
  } finally {
    progress.clear();
    client.close();
  }
}

async function openClient(context: CommandContext): Promise<OpenKubeClient> {
  try {
    return await openCluster(context, { callMs: CALL_MS, qps: QPS, burst: QPS });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError('NO_CLUSTER', error.message, 'give --kubeconfig', { cause: error });
  }
}

/** Checks that the options fit the view, rather than ignore some silently. @throws CliError USAGE naming all faults */
function refuseOdd({ view = 'nodes', sample, grace, cloud }: ClusterArgs): void {
  const numbers = [['--sample', sample ?? 0] as const, ['--grace', grace] as const];
  const wrong = [
    ...numbers
      .filter(([, value]) => !(value >= 0))
      .map(([name, value]) => `${name}: expected seconds, 0 or more, got ${value}`),
    ...(cloud && ASKS_NO_CLOUD.includes(view) ? [`--cloud: the view of ${view} asks nothing of the cloud`] : []),
    ...(sample !== undefined && !LOOKS_TWICE.includes(view) ? [`--sample: the view of ${view} looks once`] : []),
  ];
  if (wrong.length > 0) throw new CliError('USAGE', wrong.join('; '), 'see tke-eni cluster --help');
}

const ASKS_NO_CLOUD: readonly string[] = ['nodes', 'kept'];
const LOOKS_TWICE: readonly string[] = ['subnets', 'leaks'];

type ViewContext = CommandContext & {
  readonly look: (parts: readonly ClusterPart[]) => Promise<ClusterFacts>;
  readonly progress: Progress;
};
type View = (args: ClusterArgs, context: ViewContext) => Promise<ExitCode>;

const showNodes: View = async ({ output, grace }, context) => {
  const facts = await context.look(['nodes', 'pods']);
  const rows = findNodeRows(facts, grace * 1_000);
  warn(context, [facts.nodes, facts.pods]);
  await printView(output, context, { totals: totalsOf(rows), nodes: rows }, (layout) => renderNodes(rows, layout));
  return rows.some(({ problems }) => problems[0]?.severity === 'error') ? EXIT.wrong : EXIT.ok;
};

const showSubnets: View = async ({ output, sample }, context) => {
  const before = sample === undefined ? undefined : await lookAndWait(context, sample, []);
  const facts = await context.look(before === undefined ? ['vips', 'pods'] : []);
  const rows = findSubnetRows(facts, before);
  warn(context, [facts.cloud, ...(before === undefined ? [facts.vips] : [])]);
  await printView(output, context, { subnets: rows }, (layout) => renderSubnets(rows, layout));
  return rows.some(({ free }) => free === 0) ? EXIT.wrong : EXIT.ok;
};

const showEnis: View = async ({ output }, context) => {
  const facts = await context.look(['pods', 'venis']);
  const rows = findEniRows(facts);
  warn(context, [facts.pods, facts.cloud]);
  await printView(output, context, { enis: rows }, (layout) => renderEnis(rows, layout));
  return EXIT.ok;
};

const showKept: View = async ({ output, grace }, context) => {
  const facts = await context.look(['pods', 'vips', 'claims', 'venis', 'eips']);
  const kept = findKept(facts);
  warn(context, [facts.pods, facts.vips, facts.claims, facts.venis, facts.eips]);
  await printView(output, context, kept, (layout) => renderKept(kept, layout));
  return isKeptWrong(kept, grace * 1_000) ? EXIT.wrong : EXIT.ok;
};

/**
 * Seconds between the two reads of leaks: longer than ipamd delays its records after a change (--record-delay, 10 s).
 */
const LEAKS_APART_S = 30;

const ALL: readonly ClusterPart[] = ['nodes', 'pods', 'vips', 'claims', 'venis', 'eips'];

const showLeaks: View = async ({ output, sample = LEAKS_APART_S, grace }, context) => {
  const graceMs = grace * 1_000;
  const before = sample === 0 ? undefined : findLeaks(await lookAndWait(context, sample, ALL), graceMs);
  const facts = await context.look(ALL);
  const last = findLeaks(facts, graceMs);
  const leaks = before === undefined ? last : seenTwice(before, last);
  warn(context, [facts.nodes, facts.pods, facts.vips, facts.claims, facts.venis, facts.eips, facts.cloud]);
  const apartMs = before === undefined ? undefined : sample * 1_000;
  const terms = { apartMs, graceMs, wasCloudAsked: facts.cloud !== undefined };
  await printView(output, context, { ...terms, ...leaks }, (layout) => renderLeaks(leaks, terms, layout));
  if (leaks.findings.some(({ severity }) => severity !== 'info')) return EXIT.wrong;
  return leaks.unseen.length > 0 ? EXIT.failed : EXIT.ok;
};

const VIEWS: Readonly<Record<string, View>> = {
  nodes: showNodes,
  subnets: showSubnets,
  enis: showEnis,
  kept: showKept,
  leaks: showLeaks,
};

/** Reads the cluster and waits. The caller compares the result with the next read. */
async function lookAndWait(
  { look, progress, clock, signal }: ViewContext,
  seconds: number,
  parts: readonly ClusterPart[],
): Promise<ClusterFacts> {
  const before = await look(parts);
  progress.show(`looking again in ${seconds} s`);
  await clock.sleep(seconds * 1_000, signal);
  return before;
}

/** Prints a warning for each resource that could not be read, with the next step. */
function warn({ stderr, progress }: ViewContext, facts: readonly (Known<unknown> | undefined)[]): void {
  progress.clear();
  for (const fact of facts) {
    if (fact?.kind !== 'unknown') continue;
    stderr.write(renderWarning(`${fact.why}; next: ${fact.next}`, stderr.isColored));
  }
}
