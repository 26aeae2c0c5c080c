import { NODE_ANNOTATION } from '../../crd/names.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { NODES } from '../../kube/resource-types.ts';
import { decodeNode, type NodeEntry } from '../cache/node-entry.ts';

/**
 * Objects that are let go although their nodes stay, with the supply epoch of each: the next object of such a node is filled
 * from the cloud. Of one term; after a change of leader the epoch that the agent has seen has the same effect.
 */
export class Renewals {
  readonly #epochs = new Map<string, number>();
  /** Nodes whose next object does not exist yet. */
  readonly #awaited = new Set<string>();

  /**
   * Notes that the object of a node is about to be let go. The Node is read first: the cache may lack the annotation, or
   * the deletion, that has its ENIs given back. False: it does not stay, and its object must not go. @throws KubeError
   */
  async begin(kube: KubeClient, name: string, epoch: number, signal: AbortSignal): Promise<boolean> {
    const node = await kube.get(NODES, { name }, signal);
    if (node === undefined || !isStaying(decodeNode(node))) return false;
    this.#epochs.set(name, epoch);
    this.#awaited.add(name);
    return true;
  }

  /** Returns the supply epoch of a node's last object; undefined: it was not let go. */
  epochOf(name: string): number | undefined {
    return this.#epochs.get(name);
  }

  /** Reports whether what a node's last object had is on the instance, and in no object. */
  isAwaited(name: string): boolean {
    return this.#awaited.has(name);
  }

  /** Notes that the next object of a node exists. */
  noteCreated(name: string): void {
    this.#awaited.delete(name);
  }
}

/** Reports whether a Node keeps its ENIs when its NodeENIConfig is deleted. */
export function isStaying({ isInstance, isLeaving, annotations }: NodeEntry): boolean {
  return isInstance && !isLeaving && annotations[NODE_ANNOTATION.disableEni] !== 'true';
}
