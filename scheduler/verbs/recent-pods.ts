import type { PodDemand } from '../index/pod-demand.ts';

/** Pods that are remembered: kube-scheduler binds a Pod within moments of its filter. */
const MOST = 10_000;
/** A Pod that waited in vain waits no more for so long: many such Pods would stop the scheduler, which asks one by one. */
const REST_MS = 60_000;

/** Remembers Pods that were asked about lately: bind names a Pod only by its uid, and the watch may be behind. */
export class RecentPods {
  /** 'none' for a Pod that asks for nothing of ours. */
  readonly #pods = new Map<string, PodDemand | 'none'>();
  readonly #waited = new Map<string, number>();

  /** Returns what a Pod asks for, by its uid; undefined when nobody asked about it lately. */
  get(uid: string): PodDemand | 'none' | undefined {
    return this.#pods.get(uid);
  }

  /** Notes what a Pod asks for. */
  remember(uid: string, demand: PodDemand | 'none'): void {
    put(this.#pods, uid, demand);
  }

  /** Tells whether a Pod has not waited lately. */
  mayWait(uid: string, nowMs: number): boolean {
    const before = this.#waited.get(uid);
    return before === undefined || nowMs - before > REST_MS;
  }

  /** Notes that a Pod waits. */
  waited(uid: string, nowMs: number): void {
    put(this.#waited, uid, nowMs);
  }
}

/** The oldest goes first: a Map keeps the order in which keys came. */
function put<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MOST && oldest !== undefined) map.delete(oldest);
}
