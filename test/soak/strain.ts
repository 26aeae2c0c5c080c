import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Measures how strained this process is: the servers of the system live in it, so its delays are theirs. */
export class Strain {
  readonly #delay = monitorEventLoopDelay({ resolution: 20 });
  #cpu = process.cpuUsage();
  #atMs = performance.now();

  constructor() {
    this.#delay.enable();
  }

  /** Says how busy it was since the last time it was asked, and its longest delay. */
  tell(): string {
    const spent = process.cpuUsage(this.#cpu);
    const nowMs = performance.now();
    const share = (spent.user + spent.system) / 1_000 / (nowMs - this.#atMs);
    const text = `harness ${Math.round(share * 100)} % of a core, late by ${Math.round(this.#delay.max / 1e6)} ms at most`;
    this.#delay.reset();
    this.#cpu = process.cpuUsage();
    this.#atMs = nowMs;
    return text;
  }

  /** Stops measuring. */
  close(): void {
    this.#delay.disable();
  }
}
