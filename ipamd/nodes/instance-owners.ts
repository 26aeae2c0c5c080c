/** Which nodes hang on which instances: usually one on one, two while a name goes from one instance to another. */
export class InstanceOwners {
  readonly #idsOf = new Map<string, readonly string[]>();
  readonly #nodesOf = new Map<string, Set<string>>();

  /** Sets all instances of a node; none forgets it. */
  set(node: string, instanceIds: readonly string[]): void {
    for (const id of this.#idsOf.get(node) ?? []) this.#remove(id, node);
    if (instanceIds.length === 0) this.#idsOf.delete(node);
    else this.#idsOf.set(node, instanceIds);
    for (const id of instanceIds) this.#nodesOf.set(id, (this.#nodesOf.get(id) ?? new Set()).add(node));
  }

  /** All instances that a node hangs on. */
  instanceIds(): Iterable<string> {
    return this.#nodesOf.keys();
  }

  /** The nodes of an instance. */
  nodesOf(instanceId: string): Iterable<string> {
    return this.#nodesOf.get(instanceId) ?? [];
  }

  #remove(instanceId: string, node: string): void {
    const nodes = this.#nodesOf.get(instanceId);
    nodes?.delete(node);
    if (nodes?.size === 0) this.#nodesOf.delete(instanceId);
  }
}
