import type { Instance } from '../../cloud/cloud.ts';

/** What the answers of the cloud say of an instance. */
export type Observation = {
  /** As last described; undefined: never by this process. */
  readonly instance?: Instance;
  /** Answers in a row that lack it, or that say that it is being destroyed; those within seconds count as one. */
  readonly misses: number;
  /** The same of answers that prove nothing: they had no instance of the VPC at all. */
  readonly unproven: number;
  /** Of the last of either; monotonic milliseconds. */
  readonly missedAtMs: number;
  /** When it was last asked for; monotonic milliseconds. */
  readonly askedAtMs: number;
};

const NEVER: Observation = {
  misses: 0,
  unproven: 0,
  missedAtMs: Number.NEGATIVE_INFINITY,
  askedAtMs: Number.NEGATIVE_INFINITY,
};
/** A description that lags does so for some seconds, and for every request in them. */
const MISSES_APART_MS = 10_000;
const ENDING: readonly string[] = ['TERMINATING'];

/** What was observed of the instances behind Nodes that are not ready, and of their witnesses. */
export class Observations {
  readonly #byId = new Map<string, Observation>();

  of(instanceId: string): Observation {
    return this.#byId.get(instanceId) ?? NEVER;
  }

  /** VPCs of all instances that were described. */
  *vpcIds(): Iterable<string> {
    for (const { instance } of this.#byId.values()) if (instance !== undefined) yield instance.vpcId;
  }

  /** Notes that an answer was asked for and did not come: it says nothing. */
  noteUnanswered(asked: readonly string[], nowMs: number): void {
    for (const id of asked) this.#byId.set(id, { ...this.of(id), askedAtMs: nowMs });
  }

  /**
   * Notes an answer. Returns false for one that proves nothing, because it has no instance of the VPC at all.
   * `vpcId` undefined: not known yet, so any instance counts.
   */
  noteAnswer(asked: readonly string[], answer: readonly Instance[], vpcId: string | undefined, nowMs: number): boolean {
    const described = new Map(answer.map((instance) => [instance.instanceId, instance]));
    const isProof = answer.some((instance) => vpcId === undefined || instance.vpcId === vpcId);
    for (const id of asked) {
      const before = this.of(id);
      const instance = described.get(id);
      if (instance !== undefined && !ENDING.includes(instance.state))
        this.#byId.set(id, { ...NEVER, instance, askedAtMs: nowMs });
      else if (nowMs - before.missedAtMs < MISSES_APART_MS) this.#byId.set(id, { ...before, askedAtMs: nowMs });
      else if (!isProof)
        this.#byId.set(id, { ...before, unproven: before.unproven + 1, missedAtMs: nowMs, askedAtMs: nowMs });
      else
        this.#byId.set(id, {
          ...before,
          unproven: 0,
          ...(instance === undefined ? {} : { instance }),
          misses: before.misses + 1,
          missedAtMs: nowMs,
          askedAtMs: nowMs,
        });
    }
    return isProof;
  }

  /** Forgets all misses of an instance: its Node is ready. */
  clear(instanceId: string): void {
    const before = this.#byId.get(instanceId);
    if (before !== undefined) this.#byId.set(instanceId, { ...before, misses: 0, unproven: 0 });
  }

  /** Forgets all instances but these. */
  retainOnly(instanceIds: ReadonlySet<string>): void {
    for (const id of this.#byId.keys()) if (!instanceIds.has(id)) this.#byId.delete(id);
  }
}
