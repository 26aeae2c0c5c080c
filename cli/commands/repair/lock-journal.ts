import { join } from 'node:path';
import { openDatabase } from '../../../agent/journal/journal-file.ts';
import { isLocked } from '../../../agent/journal/sqlite-error.ts';
import { UserError } from '../../../runtime/user-error.ts';

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
