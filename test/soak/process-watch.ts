import { readdirSync, readFileSync } from 'node:fs';

/** What a process has at one moment. */
export type ProcessSample = { readonly atMs: number; readonly rssMiB: number; readonly fds: number };

/** One life of a process, with what it had from time to time. */
export type ProcessLife = { readonly name: string; readonly pid: number; readonly samples: readonly ProcessSample[] };

/** What one life is judged by. Generous: a leak of a soak's twenty thousand calls is far above. */
export type GrowthBounds = {
  /** Most resident memory at any time, MiB. */
  readonly rssMiB: number;
  /** Most that it may have grown since a quarter of its life. */
  readonly growthMiB: number;
  readonly fdGrowth: number;
};

/** A life that was too short tells of starting up, not of growth. */
const SHORTEST_LIFE_MS = 60_000;

/** Reads what a process has; undefined when it is gone. @see proc_pid_statm(5) */
export function sampleProcess(pid: number, atMs: number): ProcessSample | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const rss = /^VmRSS:\s+(\d+) kB/m.exec(status)?.[1];
    if (rss === undefined) return undefined;
    return { atMs, rssMiB: Number(rss) / 1_024, fds: readdirSync(`/proc/${pid}/fd`).length };
  } catch {
    return undefined;
  }
}

/** Keeps the lives of all processes that it is shown. */
export class ProcessWatch {
  readonly #lives = new Map<string, { name: string; pid: number; samples: ProcessSample[] }>();

  /** Looks at processes now; one with a new pid begins another life. */
  look(processes: readonly { readonly name: string; readonly pid: number }[], atMs: number): void {
    for (const { name, pid } of processes) {
      const sample = sampleProcess(pid, atMs);
      if (sample === undefined) continue;
      const key = `${name} ${pid}`;
      const life = this.#lives.get(key) ?? { name, pid, samples: [] };
      life.samples.push(sample);
      this.#lives.set(key, life);
    }
  }

  /** All lives, in the order in which they began. */
  get lives(): readonly ProcessLife[] {
    return [...this.#lives.values()];
  }
}

/** The sample at a quarter of a life, from where growth is counted. Pure. */
export function quarterOf({ samples }: ProcessLife): ProcessSample | undefined {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const quarterMs = first.atMs + (last.atMs - first.atMs) / 4;
  return samples.find(({ atMs }) => atMs >= quarterMs);
}

/** Says what is wrong with the memory and the descriptors of one life. Empty is good. Pure. */
export function judgeLife(life: ProcessLife, bounds: GrowthBounds): readonly string[] {
  const { samples, name, pid } = life;
  const [first, quarter, last] = [samples[0], quarterOf(life), samples.at(-1)];
  if (first === undefined || quarter === undefined || last === undefined) return [];
  const most = Math.max(...samples.map(({ rssMiB }) => rssMiB));
  const isLong = last.atMs - first.atMs >= SHORTEST_LIFE_MS;
  const [grownMiB, grownFds] = [last.rssMiB - quarter.rssMiB, last.fds - quarter.fds];
  const who = `${name} (pid ${pid})`;
  return [
    ...(most > bounds.rssMiB ? [`${who}: ${most.toFixed(0)} MiB resident, more than ${bounds.rssMiB}`] : []),
    ...(isLong && grownMiB > bounds.growthMiB
      ? [`${who}: grew from ${quarter.rssMiB.toFixed(0)} to ${last.rssMiB.toFixed(0)} MiB`]
      : []),
    ...(isLong && grownFds > bounds.fdGrowth ? [`${who}: grew from ${quarter.fds} to ${last.fds} descriptors`] : []),
  ];
}
