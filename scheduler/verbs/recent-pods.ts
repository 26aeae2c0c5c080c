import type { PodRequest } from '../index/pod-request.ts';

/** Most Pods that are stored. kube-scheduler binds a Pod within moments of its filter call. */
const MAX_PODS = 10_000;
/**
 * After a wait that did not help, a Pod does not wait again for so long. kube-scheduler asks for one Pod at a time:
 * many waiting Pods would stop it.
 */
const WAIT_INTERVAL_MS = 60_000;

/** Cache of Pods of recent filter calls. The bind call names a Pod only by its uid, and the watch may lag behind. */
export class RecentPods {
  /** 'none' for a Pod that requests nothing of this system. */
  readonly #pods = new Map<string, PodRequest | 'none'>();
  readonly #waited = new Map<string, number>();

  /** Returns what a Pod requests, by its uid; undefined when there was no recent filter call for it. */
  get(uid: string): PodRequest | 'none' | undefined {
    return this.#pods.get(uid);
  }

  /** Stores what a Pod requests. */
  remember(uid: string, demand: PodRequest | 'none'): void {
    put(this.#pods, uid, demand);
  }

  /** Reports whether a Pod has not waited lately. */
  mayWait(uid: string, nowMs: number): boolean {
    const before = this.#waited.get(uid);
    return before === undefined || nowMs - before > WAIT_INTERVAL_MS;
  }

  /** Stores the time at which a Pod began to wait. */
  recordWait(uid: string, nowMs: number): void {
    put(this.#waited, uid, nowMs);
  }
}

/** Sets a key and drops the oldest one above the limit: a Map keeps the order of insertion. */
function put<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MAX_PODS && oldest !== undefined) map.delete(oldest);
}
