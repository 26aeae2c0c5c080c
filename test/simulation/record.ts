import { createHash } from 'node:crypto';
import type { LogFields, Logger } from '../../runtime/log.ts';

/** The one log of a run. The hash of all its lines is the identity of the run: same seed, same hash. */
export class RunRecord {
  /** All lines, when they are kept. */
  readonly lines: string[] = [];
  readonly #hash = createHash('sha256');
  readonly #keeps: boolean;
  #count = 0;

  constructor(keeps: boolean) {
    this.#keeps = keeps;
  }

  /** Adds a line. `atMs` is true time. */
  note(atMs: number, who: string, what: string): void {
    const line = `${atMs.toFixed(3)} ${who} ${what}`;
    this.#hash.update(line).update('\n');
    this.#count += 1;
    if (this.#keeps) this.lines.push(line);
  }

  /** How many lines there were. */
  get count(): number {
    return this.#count;
  }

  /** SHA-256 of the lines so far, the first 16 digits. */
  digest(): string {
    return this.#hash.copy().digest('hex').slice(0, 16);
  }
}

/** Makes a logger whose lines are lines of the record. */
export function recordingLogger(note: (what: string) => void, added: LogFields = {}): Logger {
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}): void =>
      note(`${level} ${message} ${textOf({ ...added, ...fields })}`);
  const child = (fields: LogFields): Logger => recordingLogger(note, { ...added, ...fields });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child };
}

/** Renders values as one line of JSON; errors by name and message, without a stack. */
export function textOf(value: unknown): string {
  return JSON.stringify(value, (_key, one: unknown) => {
    if (one instanceof Error) return `${one.name}: ${one.message}`;
    if (one instanceof Map || one instanceof Set) return [...one];
    return typeof one === 'bigint' ? String(one) : one;
  });
}
