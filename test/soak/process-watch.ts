import { readdirSync, readFileSync } from 'node:fs';

/** What a process has at one moment. */
type ProcessSample = {
  readonly atMs: number;
  /** Resident memory, pages of files included. */
  readonly rssMiB: number;
  /** Of it: anonymous pages, which are the process's own and which nobody else takes back. */
  readonly anonMiB: number;
  readonly fds: number;
};

/** One life of a process, with what it had from time to time. */
export type ProcessLife = { readonly name: string; readonly pid: number; readonly samples: readonly ProcessSample[] };

/** What one life is judged by. */
type GrowthBounds = {
  /** Most resident memory at any time, MiB. */
  readonly rssMiB: number;
  /** Most that the floor of its anonymous memory may rise, MiB; see `floorsOf`. */
  readonly growthMiB: number;
  /** The same of its descriptors. */
  readonly fdGrowth: number;
};

/** A life that was shorter tells nothing of growth: a minute's floor may be that of garbage not collected yet. */
const SHORTEST_LIFE_MS = 160_000;
/** Share of a life in which code is compiled and caches fill. */
const SETTLING = 1 / 4;

/** Reads what a process has; undefined when it is gone. @see proc_pid_statm(5) */
export function sampleProcess(pid: number, atMs: number): ProcessSample | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const mib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1_024;
    const [rssMiB, anonMiB] = [mib('VmRSS'), mib('RssAnon')];
    // One that has ended and was not waited for has no such lines.
    if (Number.isNaN(rssMiB) || Number.isNaN(anonMiB)) return undefined;
    return { atMs, rssMiB, anonMiB, fds: readdirSync(`/proc/${pid}/fd`).length };
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

/** What of a process is measured. */
type Measure = 'anonMiB' | 'fds';

/** The least that a process had in two times of its life. */
type Floors = { readonly early: number; readonly late: number };

/**
 * The least that a process had in each half of its life, its first quarter left out: what remained when garbage was
 * collected and bursts were over. One sample says nothing of a leak: V8 lets tens of MiB of garbage lie for half a
 * minute when it deems that cheap. Undefined of a life that was too short.
 */
export function floorsOf({ samples }: ProcessLife, measure: Measure): Floors | undefined {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || last.atMs - first.atMs < SHORTEST_LIFE_MS) return undefined;
  const settledMs = first.atMs + (last.atMs - first.atMs) * SETTLING;
  const halfMs = (settledMs + last.atMs) / 2;
  const least = (fromMs: number, toMs: number): number =>
    Math.min(...samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs).map((sample) => sample[measure]));
  return { early: least(settledMs, halfMs), late: least(halfMs, last.atMs) };
}

/** Says what is wrong with the memory and the descriptors of one life. Empty is good. */
export function judgeLife(life: ProcessLife, bounds: GrowthBounds): readonly string[] {
  const [memory, fds] = [floorsOf(life, 'anonMiB'), floorsOf(life, 'fds')];
  const most = Math.max(...life.samples.map(({ rssMiB }) => rssMiB));
  const who = `${life.name} (pid ${life.pid})`;
  return [
    ...(most > bounds.rssMiB ? [`${who}: ${most.toFixed(0)} MiB resident, more than ${bounds.rssMiB}`] : []),
    ...(hasRisen(memory, bounds.growthMiB)
      ? [`${who}: anonymous memory rose: ${tellFloors(memory)} MiB at least`]
      : []),
    ...(hasRisen(fds, bounds.fdGrowth) ? [`${who}: descriptors rose: ${tellFloors(fds)} at least`] : []),
  ];
}

/** Says what a process had at least, early and late; empty when its life was too short. */
export function tellFloors(floors: Floors | undefined): string {
  return floors === undefined ? '' : `${floors.early.toFixed(0)}, later ${floors.late.toFixed(0)}`;
}

function hasRisen(floors: Floors | undefined, bound: number): boolean {
  return floors !== undefined && floors.late - floors.early > bound;
}
