import { readFileSync } from 'node:fs';
import { table } from './format.ts';

/** One part of the demo, or of what `make` did before it. */
type TimedStage = { readonly name: string; readonly seconds: number };

/** Measures how long the parts of the demo take. */
export class Stages {
  readonly #stages: TimedStage[] = [];

  /** Runs one part. */
  async time<T>(name: string, work: () => Promise<T>): Promise<T> {
    const startedMs = performance.now();
    try {
      return await work();
    } finally {
      this.#stages.push({ name, seconds: (performance.now() - startedMs) / 1_000 });
    }
  }

  /** Returns the table: what `make` did before as `path` has it, the parts, the sum. */
  text(path: string | undefined): string {
    const stages = [...readStages(path), ...this.#stages];
    const sum = stages.reduce((total, { seconds }) => total + seconds, 0);
    return table(
      [...stages, { name: 'all', seconds: sum }].map(({ name, seconds }) => [seconds.toFixed(1).padStart(7), name]),
    );
  }
}

/** Reads the lines `SECONDS NAME` that tools/timed.sh wrote; none without the file. */
function readStages(path: string | undefined): readonly TimedStage[] {
  if (path === undefined) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, seconds, name = ''] = /^([0-9.]+) (.+)$/.exec(line) ?? [];
      return seconds === undefined ? [] : [{ name, seconds: Number(seconds) }];
    });
}
