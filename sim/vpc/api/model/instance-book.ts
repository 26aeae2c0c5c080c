import type { ModelInstance } from './types.ts';

/** How far back a description can answer. */
const PAST_MS = 60_000;

/** Instances, and those that went a short time ago. */
export class InstanceBook {
  readonly instances = new Map<string, ModelInstance>();
  #gone: { readonly instance: ModelInstance; readonly atMs: number }[] = [];

  add(instance: ModelInstance): void {
    this.instances.set(instance.instanceId, instance);
  }

  remove(instanceId: string, atMs: number): void {
    const instance = this.instances.get(instanceId);
    if (instance === undefined) return;
    this.instances.delete(instanceId);
    this.#gone = this.#gone.filter((one) => one.atMs >= atMs - PAST_MS);
    this.#gone.push({ instance, atMs });
  }

  /** Every instance that existed at some moment of the last minute. */
  asOf(atMs: number): ReadonlyMap<string, ModelInstance> {
    const gone = this.#gone.filter((one) => one.atMs > atMs).map(({ instance }) => instance);
    const then = [...gone, ...this.instances.values()].filter(({ createdAtMs }) => createdAtMs <= atMs);
    return new Map(then.map((instance) => [instance.instanceId, instance]));
  }
}
