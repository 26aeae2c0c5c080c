import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { claimKeysOf } from '../nec/claim-marks.ts';
import type { Intent } from '../nec/decision.ts';

/**
 * Calls of all nodes for kept addresses that are on record or about to be, by claim. What a watch tells of another node's
 * object may be late; this is what the process itself has decided, so that two nodes never have a call for one claim under
 * way at a time.
 */
export class ClaimCalls {
  /** Claims by node. */
  readonly #claims = new Map<string, ReadonlySet<string>>();

  /** Notes what a node's object has on record, and nothing else. */
  note(node: string, status: NodeEniConfigStatus): void {
    const keys = (status.intents ?? []).flatMap((intent) => claimKeysOf(intent, status));
    if (keys.length === 0) this.#claims.delete(node);
    else this.#claims.set(node, new Set(keys));
  }

  /** Notes an intent that is about to be put on record. */
  take(node: string, intent: Intent, status: NodeEniConfigStatus): void {
    const keys = claimKeysOf(intent, status);
    if (keys.length > 0) this.#claims.set(node, new Set([...(this.#claims.get(node) ?? []), ...keys]));
  }

  /** Forgets a node. */
  forget(node: string): void {
    this.#claims.delete(node);
  }

  /** Lists the claims that nodes other than this one have a call for. */
  ofOthers(node: string): ReadonlySet<string> {
    const others = [...this.#claims].filter(([name]) => name !== node);
    return new Set(others.flatMap(([, keys]) => [...keys]));
  }
}
