import { type EipClaim, eipClaim } from '../../crd/eip-claim.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { withoutManagedFields } from '../../kube/managed-fields.ts';
import { Faults } from '../../runtime/decode.ts';

/** What is kept of every EIPClaim. */
export type EipClaimEntry = {
  /** `namespace/name`: the Pod's. */
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Undefined for what somebody edited into nonsense: it still names an EIP, perhaps. */
  readonly claim: EipClaim | undefined;
  /** EIPs that it has, or that a call of it is about. */
  readonly eipIds: readonly string[];
  readonly nodeName: string | undefined;
};

const EIP_ID = /eip-[a-z0-9]{1,32}/g;

/** Reads an EIPClaim for an informer. Pure. */
export function decodeEipClaim(object: KubeObject): EipClaimEntry {
  const { namespace = '', name, uid = '', resourceVersion = '' } = object.metadata;
  const claim = eipClaim(withoutManagedFields(object), '', new Faults());
  const status = claim?.status;
  const ofIntents = (status?.intents ?? []).map(({ eipID }) => eipID);
  // Of what cannot be read, whatever looks like an EIP is taken for its own.
  const eipIds =
    claim === undefined ? (JSON.stringify(object['status'] ?? {}).match(EIP_ID) ?? []) : [status?.eipID, ...ofIntents];
  return {
    key: `${namespace}/${name}`,
    uid,
    resourceVersion,
    claim,
    eipIds: [...new Set(eipIds.filter((eipId) => eipId !== undefined))],
    nodeName: status?.nodeName,
  };
}

/** All EIPClaims, as a watch has them and as our own later writes left them. */
export class ClaimBook {
  readonly #cache: { get(key: string): EipClaimEntry | undefined; values(): Iterable<EipClaimEntry> };
  readonly #written = new Map<string, EipClaimEntry>();

  constructor(cache: { get(key: string): EipClaimEntry | undefined; values(): Iterable<EipClaimEntry> }) {
    this.#cache = cache;
  }

  /** Notes what a write, or a read past the watch, brought. */
  note(object: KubeObject): void {
    const entry = decodeEipClaim(object);
    this.#written.set(entry.key, entry);
  }

  /** Notes that a claim is gone. */
  forget(key: string): void {
    this.#written.delete(key);
  }

  /** Tells whether there is, or was a moment ago, a claim of this key. */
  has(key: string): boolean {
    return this.#cache.get(key) !== undefined || this.#written.has(key);
  }

  /** All claims. */
  values(): readonly EipClaimEntry[] {
    return [...this.#each()];
  }

  /** EIPs that other claims than this one have, by id. */
  rivalsOf(key: string): ReadonlyMap<string, string> {
    const rivals = new Map<string, string>();
    for (const entry of this.#each()) {
      if (entry.key !== key) for (const eipId of entry.eipIds) rivals.set(eipId, entry.key);
    }
    return rivals;
  }

  /** How many other claims have, or are getting, an EIP on a node. */
  usedOn(nodeName: string, exceptKey: string): number {
    let count = 0;
    for (const entry of this.#each()) if (entry.nodeName === nodeName && entry.key !== exceptKey) count++;
    return count;
  }

  /** Each step of each claim asks: nothing is copied for it. */
  *#each(): Iterable<EipClaimEntry> {
    for (const cached of this.#cache.values()) {
      const written = this.#written.get(cached.key);
      const isBehind = written !== undefined && isOlder(cached, written);
      if (written !== undefined && !isBehind) this.#written.delete(cached.key);
      yield isBehind ? written : cached;
    }
    for (const [key, written] of this.#written) if (this.#cache.get(key) === undefined) yield written;
  }
}

function isOlder(cached: EipClaimEntry, written: EipClaimEntry): boolean {
  const [first, second] = [cached.resourceVersion, written.resourceVersion];
  // Versions are opaque by contract and numbers in fact; where they are not, the watch is believed.
  return /^\d+$/.test(first) && /^\d+$/.test(second) && BigInt(first) < BigInt(second);
}
