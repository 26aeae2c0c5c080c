import { ifKnown } from '../../../inspection/node/known.ts';
import { readAgentFacts } from '../../../inspection/node/read-agent-facts.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { listPages } from '../../../kube/list-pages.ts';
import { EVENTS } from '../../../kube/resource-types.ts';
import { ConfigError } from '../../../runtime/decode.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { dateTimeText, latencyText } from '../../agent/duration-text.ts';
import { openOpsClient } from '../../agent/ops-client.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { openCluster } from '../../command/open-cluster.ts';
import { renderWarning } from '../../output/render-error.ts';
import { jsonText } from '../../output/render-json.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { printView } from '../pool/print-view.ts';
import type { RenderOptions } from '../pool/render-pool.ts';
import { followAgent } from '../watch/follow-agent.ts';
import { createNames } from '../watch/names.ts';
import { renderWatchEvent } from '../watch/render-watch.ts';
import { matchesFilter, type WatchEvent } from '../watch/watch-event.ts';
import type { EventsArgs } from './arguments.ts';
import { buildRecordedRows, type EventRow, selectClusterRows } from './build-event-rows.ts';

/** Shows what happened. @throws UserError NO_AGENT, FORBIDDEN when neither agent nor cluster answers; USAGE */
export async function run({ output, pod, last, follow }: EventsArgs, context: CommandContext): Promise<ExitCode> {
  if (!Number.isInteger(last) || last < 0) {
    throw new UserError('USAGE', `--last ${last}: expected a whole number`, 'leave it out for 100');
  }
  const hasCluster = context.global.kubeconfig !== '';
  const answers = await Promise.allSettled([
    recordedRows(context, pod ?? ''),
    ...(hasCluster ? [clusterRows(context, pod)] : []),
  ]);
  const failures = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
  const fault = failures.find((error) => !(error instanceof UserError));
  if (fault !== undefined) throw fault;
  if (failures.length === answers.length && !follow) throw failures[0];
  for (const error of failures) context.stderr.write(renderWarning(error.message, context.stderr.isColored));
  const rows = answers
    .flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    .toSorted((a, b) => a.atMs - b.atMs)
    .slice(last === 0 ? Number.POSITIVE_INFINITY : -last);
  if (!follow) {
    await printView(output, context, rows, (options) => renderEvents(rows, options));
    return EXIT.ok;
  }
  await followEvents(rows, { output, pod }, context);
  return EXIT.ok;
}

async function recordedRows({ global }: CommandContext, pod: string): Promise<readonly EventRow[]> {
  using client = await openOpsClient(global);
  return buildRecordedRows(await client.recorder(pod));
}

async function clusterRows(context: CommandContext, pod: string | undefined): Promise<readonly EventRow[]> {
  const facts = ifKnown(readAgentFacts(context.global.stateDir));
  const leases = facts?.journal.leases ?? [];
  const nodeName =
    facts?.journal.supply?.nodeName ?? (facts === undefined ? '' : (ifKnown(facts.node)?.nodeName ?? ''));
  const pods = new Set(leases.map(({ podNamespace, podName }) => `${podNamespace}/${podName}`));
  const rows = selectClusterRows(await readClusterEvents(context), { nodeName, pods });
  return pod === undefined ? rows : rows.filter(({ subject }) => subject.includes(pod));
}

/** Prints the rows so far, then new events as they come, in the same format. */
async function followEvents(
  rows: readonly EventRow[],
  { output, pod }: Pick<EventsArgs, 'output' | 'pod'>,
  context: CommandContext,
): Promise<void> {
  const { stdout } = context;
  const isJson = output === 'json';
  if (isJson) for (const row of rows) stdout.write(`${jsonText(row)}\n`);
  else stdout.write(renderEvents(rows, { width: Number.POSITIVE_INFINITY, isColored: stdout.isColored }));
  const names = createNames(() => ifKnown(readAgentFacts(context.global.stateDir))?.journal, context.clock);
  const filter = { kinds: [], isAll: true, ...(pod === undefined ? {} : { pod }) };
  await followAgent(context, [], names, (event: WatchEvent) => {
    if (!matchesFilter(event, filter)) return;
    stdout.write(isJson ? `${jsonText(event)}\n` : renderWatchEvent(event, stdout.isColored));
  });
}

/** Renders events, one line each; times are UTC. */
function renderEvents(rows: readonly EventRow[], options: RenderOptions): string {
  return renderTable(rows, COLUMNS, options);
}

const COLUMNS: readonly Column<EventRow>[] = [
  { title: 'TIME', text: ({ atMs }) => dateTimeText(atMs) },
  { title: 'FROM', text: ({ source }) => source, priority: 1 },
  { title: 'KIND', text: ({ kind }) => kind },
  { title: 'SUBJECT', text: ({ subject }) => subject },
  {
    title: 'OUTCOME',
    text: ({ isFailure }) => (isFailure ? 'failed' : 'ok'),
    color: ({ isFailure }) => (isFailure ? 'red' : 'green'),
  },
  {
    title: 'TOOK',
    text: ({ durationUs }) => (durationUs === undefined ? '' : latencyText(durationUs)),
    align: 'right',
    priority: 2,
  },
  { title: 'TIMES', text: ({ count }) => (count === undefined ? '' : `${count}`), align: 'right', priority: 0 },
  { title: 'TEXT', text: ({ text }) => text },
];

/** Timeout of a call, ms. It is short: a person waits. */
const CALL_MS = 10_000;
/** Largest number of pages read for each source, 4,000 events. Kubernetes keeps events for an hour only. */
const MAX_PAGES = 8;
/** Field selectors, one for each call: the API server filters by one source at a time. */
const SOURCES = ['source=tke-eni-agent', 'source=tke-eni-ipamd', 'source=kubelet,type=Warning'] as const;

/** Reads events of tke-eni components and warnings of kubelet. @throws UserError NO_CLUSTER, FORBIDDEN */
async function readClusterEvents(
  context: Pick<CommandContext, 'global' | 'env' | 'clock' | 'signal'>,
): Promise<readonly unknown[]> {
  try {
    const client = await openCluster(context, { callMs: CALL_MS, qps: 10, burst: 20 });
    try {
      const items: unknown[] = [];
      for (const fieldSelector of SOURCES) {
        let pages = 0;
        for await (const page of listPages(client, EVENTS, { fieldSelector }, context.signal)) {
          items.push(...page.items);
          if (++pages === MAX_PAGES) break;
        }
      }
      return items;
    } finally {
      client.close();
    }
  } catch (error) {
    if (isKubeError(error, 'FORBIDDEN', 'UNAUTHORIZED')) {
      const next = 'use a kubeconfig that may list events: kubectl auth can-i list events -A';
      throw new UserError('FORBIDDEN', error.message, next, { cause: error });
    }
    if (isKubeError(error) || error instanceof ConfigError) {
      throw new UserError('NO_CLUSTER', error.message, 'look at --kubeconfig', { cause: error });
    }
    throw error;
  }
}
