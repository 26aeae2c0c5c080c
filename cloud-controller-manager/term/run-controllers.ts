import type { ControllerName } from '../config/controllers-value.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { ControllerRights } from './controller-rights.ts';
import type { Controller } from './controllers.ts';

/** What a term runs, and whom it reports to. */
type Running = {
  readonly controllers: readonly Controller[];
  readonly rights: Pick<ControllerRights, 'granted'>;
  /** `waiting`: it runs, and waits for another program that does the same; undefined: it does not run. */
  readonly onState: (name: ControllerName, state: RunState | undefined) => void;
};

/** What a controller that was started does. */
export type RunState = 'running' | 'waiting';

/**
 * Runs controllers for one term, each as soon as Nodes were read and its rights are granted; ends when all have ended.
 * @throws Error when a controller throws or ends although the term has not
 */
export async function runControllers(
  deps: ControllerDeps,
  { controllers, rights, onState }: Running,
  signal: AbortSignal,
): Promise<void> {
  const failed = new AbortController();
  const ended = AbortSignal.any([signal, failed.signal]);
  const runOne = async ({ name, run }: Controller): Promise<void> => {
    try {
      await deps.nodes.synced(ended);
      await rights.granted(name, ended);
      deps.log.info('controller starts', { controller: name });
      onState(name, 'running');
      await run(deps, ended, (isWaiting) => onState(name, isWaiting ? 'waiting' : 'running'));
      if (!ended.aborted) throw new Error(`${name} ended by itself; please report it with the log`);
    } catch (error) {
      // An error that is thrown because the term has ended is not a failure.
      if (!ended.aborted) failed.abort(error);
    } finally {
      onState(name, undefined);
    }
  };
  await Promise.all(controllers.map(runOne));
  if (failed.signal.aborted) throw failed.signal.reason;
}
