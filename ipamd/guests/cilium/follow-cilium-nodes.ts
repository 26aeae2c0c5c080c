import { hasKind } from '../../../kube/has-kind.ts';
import { type Informer, openInformer } from '../../../kube/informer.ts';
import type { ObjectChange } from '../../../kube/object-cache.ts';
import { CILIUM_NODES } from '../../../kube/resource-types.ts';
import type { ChangeSignal } from '../../../runtime/change-signal.ts';
import type { InformerDeps, Informers } from '../../term/open-informers.ts';
import { CILIUM_NODE_INDEXES, type CiliumNodeEntry, decodeCiliumNode } from './cilium-node-entry.ts';

/** Cilium may be installed at any time; a node that gets the label is a reason to look at once. */
const LOOK_AGAIN_MS = 10 * 60_000;
/** After a look that the API server did not answer. */
const UNANSWERED_MS = 10_000;
const FORBIDDEN = 'CiliumNodes may not be read; nodes of Cilium get no addresses';
const INFORMER = { type: CILIUM_NODES, decode: decodeCiliumNode, indexes: CILIUM_NODE_INDEXES };

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
      const haveSome = isNeeded && (await hasKind(this.#deps, CILIUM_NODES, FORBIDDEN, signal));
      if (haveSome === undefined) {
        await this.#deps.clock.sleep(UNANSWERED_MS, signal).catch(() => {});
        continue;
      }
      if (haveSome) {
        const informer = openInformer<CiliumNodeEntry>({ ...this.#deps, ...INFORMER });
        informer.subscribe(onChange);
        this.#state = informer;
        return await informer.start(signal);
      }
      if (isNeeded) this.#state = 'none';
      await changed;
    }
  }
}
