import { timeoutSignal } from '../../runtime/clock.ts';
import { CriError, type SandboxView } from './sandbox-view.ts';

/** A runtime that takes longer counts as silent: the caller of a CHECK waits. */
const LIST_MS = 3_000;

/**
 * Asks the runtimes for the handlers of the sandboxes, by container id; without those that have their runtime's default.
 * Empty when no runtime answers.
 */
export async function listRuntimeHandlers(view: SandboxView | undefined): Promise<ReadonlyMap<string, string>> {
  try {
    const sandboxes = (await view?.list(timeoutSignal(LIST_MS))) ?? [];
    return new Map(sandboxes.flatMap(({ id, handler }) => (handler === undefined ? [] : [[id, handler] as const])));
  } catch (error) {
    if (!(error instanceof CriError)) throw error;
    return new Map();
  }
}
