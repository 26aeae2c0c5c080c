import type { Informer } from '../../../kube/informer.ts';
import type { ObjectChange } from '../../../kube/object-cache.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { NodeEntry } from '../../cache/node-entry.ts';
import { isWrittenByIpamd } from './write-pod-cidr.ts';

/** A new Node that another client gave a podCIDR. */
export type ForeignCidr = { readonly node: string; readonly uid: string; readonly cidr: string };

/** A Node that gets a podCIDR within this time after it registered has it from an allocator, later from a person. */
const ALLOCATOR_MS = 60_000;

/**
 * Detects another allocator of podCIDRs, such as kube-controller-manager with `--allocate-node-cidrs=true`: a Node that
 * registers while this process runs, and gets a podCIDR without our annotation in its first minute. One of the process,
 * leader or not, so that the next leader has the result too. It stays: a restart of the process begins again.
 */
export class SecondAllocator {
  readonly #nodes: Pick<Informer<NodeEntry>, 'isSynced'>;
  readonly #clock: Clock;
  /** New Nodes without a podCIDR: since when they are known, by uid; monotonic milliseconds. */
  readonly #waiting = new Map<string, number>();
  #found: ForeignCidr | undefined;

  constructor(nodes: Pick<Informer<NodeEntry>, 'isSynced' | 'subscribe'>, clock: Clock) {
    this.#nodes = nodes;
    this.#clock = clock;
    nodes.subscribe((change) => this.#onNode(change));
  }

  /** Undefined while there is no sign of another allocator. */
  get found(): ForeignCidr | undefined {
    return this.#found;
  }

  /** Notes that a Node got another podCIDR than the one that was being written. */
  note(found: ForeignCidr): void {
    this.#found ??= found;
  }

  #onNode({ before, after }: ObjectChange<NodeEntry>): void {
    if (before !== undefined && before.uid !== after?.uid) this.#waiting.delete(before.uid);
    // Nodes of the first list may have got theirs long ago, from whom it was right to have them.
    if (after === undefined || !this.#nodes.isSynced) return;
    const { name, uid, podCidrs, annotations } = after;
    const nowMs = this.#clock.monotonicMs();
    const isNew = before?.uid !== uid;
    const [cidr] = podCidrs;
    if (cidr === undefined) {
      if (isNew) this.#waiting.set(uid, nowMs);
      return;
    }
    const sinceMs = isNew ? nowMs : this.#waiting.get(uid);
    this.#waiting.delete(uid);
    if (sinceMs === undefined || nowMs - sinceMs > ALLOCATOR_MS) return;
    if (!isWrittenByIpamd(annotations)) this.note({ node: name, uid, cidr });
  }
}
