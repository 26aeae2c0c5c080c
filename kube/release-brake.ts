import { RELEASES_ANNOTATION } from '../crd/names.ts';
import type { Clock } from '../runtime/clock.ts';
import { StampAges } from '../runtime/stamp-ages.ts';
import type { TermNotes } from './election/term.ts';
import { ReleaseRecord } from './release-record.ts';

/** What the brake decides on. */
type BrakeFacts = {
  /** Number of nodes by their objects, those included that went within the hour. */
  readonly configCount: number;
  /** Number of Nodes that the API server lists. */
  readonly nodeCount: number;
  /** Nodes whose release began within the hour by the word of one source. */
  readonly begunCount: number;
  /** Percentage of the nodes that may be released per hour; 0 for none. */
  readonly percent: number;
};

/** Whether one more node may be released by the word of one source; `why` is for people. */
type BrakeDecision =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'held'; readonly reason: 'NoNodes' | 'ShareUsed'; readonly why: string };

/** A small cluster may lose some nodes at once. */
const MIN_PER_HOUR = 3;
const HOUR_MS = 3_600_000;
const PERCENT = 100;
const SCAN_MS = 1_000;

/**
 * Decides whether one more node is released by the word of one source: a share of the nodes per hour, at least three.
 * An API server without any Node proves nothing: not one is released then.
 */
export function decideBrake({ configCount, nodeCount, begunCount, percent }: BrakeFacts): BrakeDecision {
  if (nodeCount === 0) return { kind: 'held', reason: 'NoNodes', why: 'the API server has no Node at all' };
  const limit = percent === 0 ? 0 : Math.max(MIN_PER_HOUR, Math.floor((configCount * percent) / PERCENT));
  if (begunCount < limit) return { kind: 'allowed' };
  const why = `${begunCount} nodes were released within an hour, as many as --node-release-percent allows`;
  return { kind: 'held', reason: 'ShareUsed', why };
}

/** A node, with the time at which its release began by a mark on its object, RFC 3339, if it did. */
type BrakedConfig = { readonly name: string; readonly begunAt: string | undefined };

/**
 * Counts the releases that began by the word of one source. Those of earlier leaders are read from marks on objects, and
 * from the lock, where each is recorded before it begins. Without a lock a new process does not count those whose object
 * went before it started.
 */
export class ReleaseBrake {
  readonly #clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  readonly #percent: number;
  readonly #ages: StampAges;
  /** Monotonic milliseconds, by node. */
  readonly #begunMs = new Map<string, number>();
  #names: ReadonlySet<string> = new Set();
  #scannedMs: number | undefined;
  readonly #record: ReleaseRecord;
  #notes: TermNotes | undefined;
  /** Releases that were added to the record, and how many of them the lock has. */
  #added = 0;
  #saved = 0;

  constructor(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>, percent: number) {
    this.#clock = clock;
    this.#percent = percent;
    this.#ages = new StampAges(clock);
    this.#record = new ReleaseRecord(clock);
  }

  /** Begins a term: what earlier leaders recorded counts. Without notes releases are counted by this process alone. */
  begin(notes: TermNotes | undefined): void {
    this.#notes = notes;
    this.#record.take(notes?.read(RELEASES_ANNOTATION));
  }

  /**
   * Asks for the release of one node, and records it if it is allowed. A node that was allowed stays so for an hour.
   * @throws Error when the record could not be stored: then nothing may be released
   */
  async request(name: string, nodeCount: number, configs: Iterable<BrakedConfig>): Promise<BrakeDecision> {
    const decision = this.#decide(name, nodeCount, configs);
    if (decision.kind === 'allowed' && this.#saved < this.#added) {
      const added = this.#added;
      await this.#notes?.write(RELEASES_ANNOTATION, this.#record.render());
      this.#saved = Math.max(this.#saved, added);
    }
    return decision;
  }

  #decide(name: string, nodeCount: number, configs: Iterable<BrakedConfig>): BrakeDecision {
    const nowMs = this.#clock.monotonicMs();
    if (this.#scannedMs === undefined || nowMs - this.#scannedMs >= SCAN_MS) this.#scan(configs, nowMs);
    this.#forgetOld(nowMs);
    const isBegun = this.#begunMs.has(name);
    const others = this.#begunMs.size - (isBegun ? 1 : 0);
    const begunCount = Math.max(others, this.#record.count - (isBegun ? 1 : 0));
    const decision = decideBrake({ configCount: this.#names.size, nodeCount, begunCount, percent: this.#percent });
    if (decision.kind === 'allowed' && !isBegun) {
      this.#begunMs.set(name, nowMs);
      this.#record.add();
      this.#added += 1;
    }
    return decision;
  }

  /** Reads names and marks: thousands of nodes may ask at a time. */
  #scan(configs: Iterable<BrakedConfig>, nowMs: number): void {
    this.#scannedMs = nowMs;
    const names = new Set<string>();
    for (const config of configs) {
      names.add(config.name);
      this.#noteMark(config, nowMs);
    }
    this.#forgetOld(nowMs);
    for (const node of this.#begunMs.keys()) names.add(node);
    this.#names = names;
  }

  #forgetOld(nowMs: number): void {
    for (const [node, begunMs] of this.#begunMs) if (nowMs - begunMs >= HOUR_MS) this.#begunMs.delete(node);
  }

  #noteMark({ name, begunAt }: BrakedConfig, nowMs: number): void {
    const ageMs = this.#ages.ageMs(name, begunAt);
    if (begunAt !== undefined && !this.#begunMs.has(name)) this.#begunMs.set(name, nowMs - ageMs);
  }
}
