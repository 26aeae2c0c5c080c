import type { CallContext } from '../cloud.ts';
import { SharedRun } from './shared-run.ts';

type Line<T> = { running: SharedRun<T> | undefined; next: SharedRun<T> | undefined };

/**
 * Shares one sweep among all who want the same: at most one runs and one waits per key. Who comes while one runs gets
 * the next, for the running one may have read before what the newcomer wants to see.
 */
export class SharedSweep<T> {
  #lines = new Map<string, Line<T>>();

  /**
   * Resolves with a sweep that began after this call. `sweep` runs in the context of the first who wanted it, but with
   * a signal of its own.
   */
  async join(key: string, context: CallContext, sweep: (context: CallContext) => Promise<T>): Promise<T> {
    context.signal.throwIfAborted();
    const line = this.#lines.get(key) ?? { running: undefined, next: undefined };
    this.#lines.set(key, line);
    line.next ??= this.#queue(key, line, context, sweep);
    return await line.next.join(context.signal);
  }

  #queue(key: string, line: Line<T>, context: CallContext, sweep: (context: CallContext) => Promise<T>): SharedRun<T> {
    return new SharedRun(async (signal) => {
      await line.running?.over();
      line.running = line.next;
      line.next = undefined;
      try {
        signal.throwIfAborted();
        return await sweep({ ...context, signal });
      } finally {
        line.running = undefined;
        if (line.next === undefined) this.#lines.delete(key);
      }
    });
  }
}
