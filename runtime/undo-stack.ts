/** An undo step that failed, and the reason. */
type UndoFailure = { readonly what: string; readonly error: unknown };

type Step = { readonly what: string; readonly undo: () => void };

/**
 * Collects the inverse of each step that succeeded, so that a failure halfway leaves nothing behind. Unless committed,
 * the pushed steps are run, newest first.
 */
export class UndoStack {
  readonly #steps: Step[] = [];

  /** Adds the inverse of a step that has just succeeded; `what` names the step in failures. */
  push(what: string, undo: () => void): void {
    this.#steps.push({ what, undo });
  }

  /** Drops all steps: the work as a whole succeeded. */
  commit(): void {
    this.#steps.length = 0;
  }

  /** Runs every undo, newest first. One that throws does not stop the others; all failures are returned. */
  unwind(): readonly UndoFailure[] {
    const failures: UndoFailure[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        step.undo();
      } catch (error) {
        failures.push({ what: step.what, error });
      }
    }
    return failures;
  }
}
