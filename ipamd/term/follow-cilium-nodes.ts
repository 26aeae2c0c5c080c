import type { Informer } from '../../kube/informer.ts';
import type { ObjectChange } from '../../kube/object-cache.ts';
import type { ChangeSignal } from '../../runtime/change-signal.ts';
import type { CiliumNodeEntry } from '../guests/cilium/cilium-node-entry.ts';
import { haveCiliumNodes, type InformerDeps, type Informers, openCiliumNodes } from './open-informers.ts';

/** Cilium may be installed at any time; a node that gets the label is a reason to look at once. */
const LOOK_AGAIN_MS = 10 * 60_000;
/** After a look that the API server did not answer. */
const UNANSWERED_MS = 10_000;

/** Follows CiliumNodes once a Node has the label, and where the cluster has them. One for each term of leadership. */
export class CiliumFollower {
  readonly #deps: InformerDeps;
  readonly #nodes: Informers['nodes'];
  #state: Informer<CiliumNodeEntry> | 'none' | 'unknown' = 'unknown';

  constructor(deps: InformerDeps, nodes: Informers['nodes'], isServed: boolean) {
    this.#deps = deps;
    this.#nodes = nodes;
    if (!isServed) this.#state = 'none';
  }

  /** `none`: the cluster has no CiliumNodes, or none is served. `unknown`: that was not looked at yet. */
  get state(): Informer<CiliumNodeEntry> | 'none' | 'unknown' {
    return this.#state;
  }

  /**
   * Returns the addresses that a CiliumNode has in its pool or in use: while it does, they stay on their ENIs. `unknown`
   * before the CiliumNodes were read.
   */
  ipsOf(name: string): ReadonlySet<string> | 'unknown' {
    if (this.#state === 'none') return new Set();
    if (this.#state === 'unknown' || !this.#state.isSynced) return 'unknown';
    const { pool, used } = this.#state.get(name)?.ipam ?? {};
    return new Set([...(pool?.keys() ?? []), ...(used?.keys() ?? [])]);
  }

  /** Undefined while CiliumNodes are not followed. */
  get informer(): Informer<CiliumNodeEntry> | undefined {
    return typeof this.#state === 'string' ? undefined : this.#state;
  }

  /**
   * Runs until aborted, and calls `onChange` with each CiliumNode that changes. `labelled` says that a Node got the label.
   * Never rejects.
   */
  async run(
    labelled: ChangeSignal,
    onChange: (change: ObjectChange<CiliumNodeEntry>) => void,
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted) {
      // Waited for before the look, so that a label that comes meanwhile is not missed.
      const changed = labelled.wait(LOOK_AGAIN_MS, signal);
      const isNeeded = [...this.#nodes.values()].some(({ isCiliumCrd }) => isCiliumCrd === true);
      const haveSome = isNeeded && (await haveCiliumNodes(this.#deps, signal));
      if (haveSome === undefined) {
        await this.#deps.clock.sleep(UNANSWERED_MS, signal).catch(() => {});
        continue;
      }
      if (haveSome) {
        const informer = openCiliumNodes(this.#deps);
        informer.subscribe(onChange);
        this.#state = informer;
        return await informer.start(signal);
      }
      if (isNeeded) this.#state = 'none';
      await changed;
    }
  }
}
