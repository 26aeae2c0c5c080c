import { isDeepStrictEqual } from 'node:util';
import type { ClaimRequest } from '../decide/claim-request.ts';

type RequestMap = ReadonlyMap<string, ClaimRequest>;

const NONE: RequestMap = new Map();

/**
 * Requests of claims by node, for static addresses and exclusive ENIs. Stores the last decisions; decides nothing
 * itself.
 */
export class ClaimRequests {
  readonly #byNode = new Map<string, RequestMap>();
  readonly #nodesOf = new Map<string, ReadonlySet<string>>();
  readonly #ipsOf = new Map<string, readonly string[]>();
  readonly #reserved = new Map<string, string>();
  #isComplete = false;

  /** True once every claim was decided once; before that a missing request proves nothing. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Marks that every claim was decided once. */
  complete(): void {
    this.#isComplete = true;
  }

  /** Returns the requests of a node by key of the claim; undefined while not complete. */
  requestsOf(nodeName: string): RequestMap | undefined {
    return this.#isComplete ? (this.#byNode.get(nodeName) ?? NONE) : undefined;
  }

  /**
   * Returns claims by their static address: if the cloud assigns such an address to a node by chance, it belongs to the
   * claim. It is one live map: copying it for each change would cost as much as there are claims, for each claim.
   */
  reservedIps(): ReadonlyMap<string, string> {
    return this.#reserved;
  }

  /** Stores the decision for a claim. Returns the nodes whose requests changed. */
  set(key: string, requests: RequestMap, ips: readonly string[]): readonly string[] {
    const before = this.#nodesOf.get(key) ?? new Set<string>();
    const touched = [...new Set([...before, ...requests.keys()])];
    const changed = touched.filter((node) => !isDeepStrictEqual(this.#byNode.get(node)?.get(key), requests.get(node)));
    for (const node of changed) this.#put(node, key, requests.get(node));
    if (requests.size === 0) this.#nodesOf.delete(key);
    else this.#nodesOf.set(key, new Set(requests.keys()));
    this.#reserve(key, ips);
    return changed;
  }

  #put(node: string, key: string, request: ClaimRequest | undefined): void {
    const next = new Map(this.#byNode.get(node));
    if (request === undefined) next.delete(key);
    else next.set(key, request);
    if (next.size === 0) this.#byNode.delete(node);
    else this.#byNode.set(node, next);
  }

  #reserve(key: string, ips: readonly string[]): void {
    const before = this.#ipsOf.get(key) ?? [];
    if (isDeepStrictEqual(before, ips)) return;
    for (const ip of before) if (this.#reserved.get(ip) === key) this.#reserved.delete(ip);
    for (const ip of ips) this.#reserved.set(ip, key);
    if (ips.length === 0) this.#ipsOf.delete(key);
    else this.#ipsOf.set(key, ips);
  }
}
