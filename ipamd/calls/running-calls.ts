import { openChildSignal } from '../../runtime/child-signal.ts';
import type { IntentOutcome } from '../decide/decision.ts';
import type { IntentEvaluation } from '../decide/evaluate-intent.ts';
import { noteEniChange } from './eni-changes.ts';
import type { NodeDeps } from './node-deps.ts';
import type { CallKind, NodeMemory, RunningCall } from './node-memory.ts';
import type { IntentCase } from './note-refusal.ts';
import { followIntent, resolveUntilKnown, sendIntent } from './run-intent.ts';

/** Starts the work for an intent beside the reconcile: it outlives the reconcile, and ends with the term. */
export function startCall(deps: NodeDeps, memory: NodeMemory, kind: CallKind, one: IntentCase): void {
  const { clock } = deps;
  const startedMs = clock.monotonicMs();
  // A call and its task add some listeners each, and nodes have thousands of them at once.
  const { signal, close } = openChildSignal(deps.leader.term.signal);
  const { id } = one.intent;
  const work = RUN[kind](deps, one, signal).then(
    (outcome) => reportCall(deps, one, outcome, clock.monotonicMs() - startedMs),
    (error: unknown) => faultOutcome(deps, one, error, signal),
  );
  const call: RunningCall = { kind, endedMs: undefined, outcome: undefined, ended: work.then(end) };
  function end(outcome: IntentEvaluation | undefined): void {
    close();
    // After the end of the term nothing more is written: the call stays without an outcome.
    if (outcome === undefined) return;
    call.endedMs = clock.monotonicMs();
    call.outcome = outcome;
    if (outcome !== 'repeat' && outcome.kind === 'done')
      noteEniChange(deps.memory.changes, one.node, one.intent, outcome.result, one.sourceNode);
    if (!memory.isReconciling) deps.enqueueNode(one.node);
  }
  memory.calls.set(id, call);
  if (kind === 'send') memory.intentSinceMs.set(id, startedMs);
}

/** Waits until one of the calls ends, the node is queued again because something has changed, or `ms` have passed. */
export async function waitForAny(
  { clock, queuedAgain }: Pick<NodeDeps, 'clock' | 'queuedAgain'>,
  name: string,
  calls: readonly RunningCall[],
  ms: number,
  signal: AbortSignal,
): Promise<'changed' | 'ended'> {
  const either = openChildSignal(signal);
  const timeout = clock.sleep(ms, either.signal).catch(() => undefined);
  const changed = queuedAgain === undefined ? [] : [queuedAgain(name, either.signal).then(() => 'changed' as const)];
  try {
    const first = await Promise.race([...calls.map((call) => call.ended), timeout, ...changed]);
    signal.throwIfAborted();
    return first === 'changed' ? 'changed' : 'ended';
  } finally {
    // Without a reason it would make an error with a stack each time.
    either.abort('the wait is over');
    either.close();
  }
}

const RUN: Readonly<
  Record<CallKind, (deps: NodeDeps, one: IntentCase, signal: AbortSignal) => Promise<IntentEvaluation>>
> = {
  send: sendIntent,
  follow: followIntent,
  resolve: resolveUntilKnown,
};

function reportCall(
  { metrics, log }: NodeDeps,
  { node, intent }: IntentCase,
  outcome: IntentEvaluation,
  tookMs: number,
): IntentEvaluation {
  if (outcome === 'repeat') return outcome;
  const { action, eniID, id } = intent;
  const error = 'error' in outcome ? outcome.error : undefined;
  const code = error === undefined ? {} : { code: error.code };
  metrics.nodeCalls.inc({ action, outcome: outcome.kind, code: error?.code ?? '' });
  metrics.nodeCallTime.observeMs({ action }, tookMs);
  const fields = { node, intent: id, action, eniID, outcome: outcome.kind, tookMs, ...code, cloudSays: error?.message };
  if (error === undefined) log.info('cloud call ended', fields);
  else log.warn('cloud call ended', fields);
  return outcome;
}

/** Returns the outcome of a call that failed by a fault of ipamd: it is unknown how the call ended. */
function faultOutcome(
  { log }: NodeDeps,
  { node, intent }: IntentCase,
  error: unknown,
  signal: AbortSignal,
): IntentOutcome | undefined {
  if (signal.aborted) return undefined;
  log.error('a cloud call failed by a fault of ipamd', { node, intent: intent.id, action: intent.action, error });
  return { kind: 'unclear', error: { code: 'INTERNAL', message: String(error) } };
}
