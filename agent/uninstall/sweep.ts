import { messageOf } from '../../runtime/error-text.ts';
import type { Logger } from '../../runtime/log.ts';

/** Collects what an uninstallation removed, what it left, and what it could not remove. */
export class Sweep {
  readonly #log: Logger;
  readonly #removed = new Map<string, number>();
  readonly #left: string[] = [];
  readonly #failed: string[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Counts and logs something that was removed. */
  removed(kind: string, what: string): void {
    this.#removed.set(kind, (this.#removed.get(kind) ?? 0) + 1);
    this.#log.info('removed', { kind, what });
  }

  /** Counts and logs a setting, or a file, that is as it was before. */
  restored(what: string, kind: 'setting' | 'executable' = 'setting'): void {
    const counted = `${kind} given back`;
    this.#removed.set(counted, (this.#removed.get(counted) ?? 0) + 1);
    this.#log.info('given back', { what });
  }

  /** Records what stays, and why. */
  leave(what: string): void {
    this.#left.push(what);
    this.#log.info('left', { what });
  }

  /** Records what could not be done. */
  fail(what: string, error: unknown): void {
    this.#failed.push(`${what}: ${messageOf(error)}`);
    this.#log.error('not removed', { what, error });
  }

  /** Runs one step; its failure does not prevent the others. */
  async step(what: string, run: () => void | Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      this.fail(what, error);
    }
  }

  /** Reports whether a step failed. */
  hasFailed(): boolean {
    return this.#failed.length > 0;
  }

  /** Returns the overall result. */
  report(): {
    readonly removed: Readonly<Record<string, number>>;
    readonly left: readonly string[];
    readonly failed: readonly string[];
  } {
    return { removed: Object.fromEntries(this.#removed), left: [...this.#left], failed: [...this.#failed] };
  }
}
