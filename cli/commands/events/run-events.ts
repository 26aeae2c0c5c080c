import { ifKnown } from '../../../inspection/node/known.ts';
import { readAgentFacts } from '../../../inspection/node/read-agent-facts.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { dateTimeText, latencyText } from '../../agent/duration-text.ts';
import { openOpsClient } from '../../agent/ops-client.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
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
import { buildRecordedRows } from './build-recorded-rows.ts';
import type { EventRow } from './event-row.ts';
import { readClusterEvents } from './read-cluster-events.ts';
import { selectClusterRows } from './select-cluster-rows.ts';

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
export function renderEvents(rows: readonly EventRow[], options: RenderOptions): string {
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
