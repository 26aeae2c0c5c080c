import type { Informer } from '../../kube/informer.ts';
import type { ChangeSignal } from '../../runtime/change-signal.ts';
import type { CiliumNodeEntry } from '../cilium/cilium-node-entry.ts';
import { haveCiliumNodes, type InformerDeps, type Informers, openCiliumNodes } from './open-informers.ts';

/** Cilium may be installed at any time; a node that gets the label is a reason to look at once. */
const LOOK_AGAIN_MS = 10 * 60_000;

/** Follows CiliumNodes once a Node has the label, and where the cluster has them. One for each term of leadership. */
export class CiliumFollower {
  readonly #deps: InformerDeps;
  readonly #nodes: Informers['nodes'];
  #state: Informer<CiliumNodeEntry> | 'none' | 'unknown' = 'unknown';

  constructor(deps: InformerDeps, nodes: Informers['nodes']) {
    this.#deps = deps;
    this.#nodes = nodes;
  }

  /** `none`: the cluster has no CiliumNodes. `unknown`: that was not looked at yet. */
  get state(): Informer<CiliumNodeEntry> | 'none' | 'unknown' {
    return this.#state;
  }

  /** Undefined while CiliumNodes are not followed. */
  get informer(): Informer<CiliumNodeEntry> | undefined {
    return typeof this.#state === 'string' ? undefined : this.#state;
  }

  /**
   * Runs until aborted, and calls `onChange` with the name of each CiliumNode that changes. `labelled` says that a Node
   * got the label. Never rejects.
   */
  async run(labelled: ChangeSignal, onChange: (name: string) => void, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // Waited for before the look, so that a label that comes meanwhile is not missed.
      const changed = labelled.wait(LOOK_AGAIN_MS, signal);
      const isNeeded = [...this.#nodes.values()].some(({ isCiliumCrd }) => isCiliumCrd === true);
      if (isNeeded && (await haveCiliumNodes(this.#deps, signal))) {
        const informer = openCiliumNodes(this.#deps);
        informer.subscribe(({ key }) => onChange(key));
        this.#state = informer;
        return await informer.start(signal);
      }
      if (isNeeded) this.#state = 'none';
      await changed;
    }
  }
}
