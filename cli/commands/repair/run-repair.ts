import { join } from 'node:path';
import { openDatabase } from '../../../agent/journal/journal-file.ts';
import { isLocked } from '../../../agent/journal/sqlite-error.ts';
import { type Change, renderChange } from '../../../inspection/judge/change.ts';
import { compareNode } from '../../../inspection/judge/compare-node.ts';
import { isDifferent, type NodeDifferences } from '../../../inspection/judge/difference.ts';
import { plainLines } from '../../../runtime/plain-text.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { isNoAgent, openOpsClient } from '../../agent/ops-client.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { printDocument } from '../../output/print-document.ts';
import { observeNode } from '../diff/observe-node.ts';
import { type Applied, applyChanges } from './apply-changes.ts';
import type { RepairArgs } from './arguments.ts';
import { renderRepair, repairDocument } from './render-repair.ts';
import type { Repair } from './repair.ts';

/**
 * Repairs what belongs to tke-eni, or prints the plan.
 * @throws UserError REFUSED when a running agent cannot be asked
 */
export async function run(args: RepairArgs, context: CommandContext): Promise<ExitCode> {
  const { stdout } = context;
  const isLive = !args['dry-run'] && (args.output === 'table' || args.output === 'wide' || args.output === 'ip');
  const onDone = (line: string): void => {
    if (isLive) stdout.write(`${plainLines(line.trimEnd())}\n`);
  };
  const repair = await repairNode(args['dry-run'], context, onDone);
  if (args.output === 'json' || args.output === 'yaml')
    await printDocument(repairDocument(repair), args.output, stdout);
  else {
    const layout = { width: stdout.columns(), isColored: stdout.isColored };
    stdout.write(renderRepair(repair, args.output === 'ip', layout));
  }
  const isRepaired = repair.failed.length === 0 && !repair.left.differences.some(isDifferent);
  return isRepaired ? EXIT.ok : EXIT.wrong;
}

async function repairNode(isDryRun: boolean, context: CommandContext, onDone: (line: string) => void): Promise<Repair> {
  if (isDryRun) return dryRun(context);
  // Errors in planning are reported before the agent is asked to change anything.
  await observeNode(context);
  const answer = await requestRepair(context);
  if (answer.kind === 'answered') {
    for (const line of answer.done) onDone(line);
    const rest = await applyChanges(context, (await changesNow(context)).filter(isBesideAgent), onDone);
    return {
      isDryRun,
      writer: 'agent',
      ...joinResults(answer, rest),
      held: answer.held,
      left: await differencesNow(context),
    };
  }
  using _lock = lockJournal(context.global.stateDir, answer.why);
  const applied = await applyChanges(context, await changesNow(context), onDone);
  return { isDryRun, writer: 'cli', ...joinResults(applied), held: [], left: await differencesNow(context) };
}

async function dryRun(context: CommandContext): Promise<Repair> {
  const left = await differencesNow(context);
  const changes = left.changes.map(renderChange);
  return { isDryRun: true, writer: 'cli', changes, failed: [], held: [], left };
}

/**
 * Reports whether a change is outside the agent's area: inside a Pod with an active lease, or on a veth without a lease.
 */
function isBesideAgent({ kind }: Change): boolean {
  return kind !== 'host';
}

function joinResults(...results: readonly Applied[]): Pick<Repair, 'changes' | 'failed'> {
  return { changes: results.flatMap(({ done }) => done), failed: results.flatMap(({ failed }) => failed) };
}

async function differencesNow(context: CommandContext): Promise<NodeDifferences> {
  return compareNode(await observeNode(context));
}

async function changesNow(context: CommandContext): Promise<readonly Change[]> {
  return (await differencesNow(context)).changes;
}

type AgentAnswer =
  | ({ readonly kind: 'answered'; readonly held: readonly string[] } & Applied)
  | { readonly kind: 'nobody'; readonly why: string };

/** Requests one repair pass from the running agent. @throws UserError FORBIDDEN, REFUSED */
async function requestRepair({ global }: CommandContext): Promise<AgentAnswer> {
  try {
    using client = await openOpsClient(global);
    // A blocked agent does not answer this call either, and its timeout is shorter: a repair may take a minute.
    await client.summary();
    const reply = await client.repair({ dryRun: false });
    if (reply.error !== undefined) {
      const next = 'tke-eni status says what the agent waits for';
      throw new UserError('REFUSED', `the agent cannot repair now: ${reply.error.msg} ${reply.error.details}`, next);
    }
    const failed = reply.failed.map(({ operation, error }) => ({ line: operation, error }));
    return { kind: 'answered', done: reply.operations, failed, held: reply.held };
  } catch (error) {
    if (isNoAgent(error)) return { kind: 'nobody', why: error.message };
    throw error;
  }
}

/**
 * Locks the agent's journal, as an agent does at its start. Until the lock is released no agent can start and change
 * the kernel at the same time. The content of the journal is not changed.
 * @throws UserError REFUSED when it is locked: an agent runs
 */
export function lockJournal(stateDir: string, agentProblem: string): Disposable {
  const path = join(stateDir, 'journal.db');
  try {
    const database = openDatabase(path);
    return { [Symbol.dispose]: () => database.close() };
  } catch (error) {
    if (!isLocked(error)) throw error;
    const message = `an agent has ${path} open and could not be asked to repair (${agentProblem}); two writers would undo each other's changes`;
    const next =
      'name its socket with --socket, update it, or stop it: kubectl -n kube-system delete pod …; then try again';
    throw new UserError('REFUSED', message, next, { cause: error });
  }
}
