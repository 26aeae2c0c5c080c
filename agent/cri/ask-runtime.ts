import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { CriSandbox, CriSandboxNetwork, SandboxView } from './sandbox-view.ts';

/** What is asked, and how long. */
type Question = {
  /** Ids of sandboxes of which the node has traces; a list with none of them may be of a runtime that has no part in these Pods. */
  readonly ids: ReadonlySet<string>;
  /** How long to wait for the runtime, which may be starting at the same time. After that any list is good enough. */
  readonly patienceMs: number;
  /** The warning when none answers: what goes on without it. */
  readonly unanswered: string;
};

/** What the runtime says. */
type RuntimeAnswer = {
  /** Undefined when no runtime answers, or none is configured. */
  readonly sandboxes: readonly CriSandbox[] | undefined;
  /** By sandbox id; undefined for one that is gone meanwhile. */
  readonly networks: ReadonlyMap<string, CriSandboxNetwork | undefined>;
};

const RETRY_MS = 1_000;
const NO_ANSWER: RuntimeAnswer = { sandboxes: undefined, networks: new Map() };

/**
 * Asks the runtime of the node's Pods for its sandboxes and their networks, and waits for it: another one may answer first.
 * Rejects with the signal's reason when aborted, and for nothing else.
 */
export async function askRuntime(
  deps: { readonly view: SandboxView | undefined; readonly clock: Clock; readonly log: Logger },
  question: Question,
  signal: AbortSignal,
): Promise<RuntimeAnswer> {
  const { view, clock, log } = deps;
  if (view === undefined) return NO_ANSWER;
  try {
    const sandboxes = await listKnown(view, clock, question, signal);
    const networks = await Promise.all(sandboxes.map(async ({ id }) => [id, await view.network(id, signal)] as const));
    return { sandboxes, networks: new Map(networks) };
  } catch (error) {
    if (signal.aborted) throw error;
    log.warn(question.unanswered, { error });
    return NO_ANSWER;
  }
}

async function listKnown(
  view: SandboxView,
  clock: Clock,
  { ids, patienceMs }: Question,
  signal: AbortSignal,
): Promise<readonly CriSandbox[]> {
  const untilMs = clock.monotonicMs() + patienceMs;
  for (;;) {
    const isLate = clock.monotonicMs() >= untilMs;
    try {
      const sandboxes = await view.list(signal);
      if (isLate || ids.size === 0 || sandboxes.some(({ id }) => ids.has(id))) return sandboxes;
    } catch (error) {
      if (signal.aborted || isLate) throw error;
    }
    await clock.sleep(RETRY_MS, signal);
  }
}
