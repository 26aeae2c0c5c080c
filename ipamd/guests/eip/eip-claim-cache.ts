import { type EipClaim, eipClaim } from '../../../crd/eip-claim.ts';
import { FreshStore } from '../../../kube/fresh-store.ts';
import { type Informer, openInformer } from '../../../kube/informer.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { withoutManagedFields } from '../../../kube/managed-fields.ts';
import { EIP_CLAIMS } from '../../../kube/resource-types.ts';
import { Faults } from '../../../runtime/decode.ts';
import type { InformerDeps } from '../../term/open-informers.ts';

/** What is cached of every EIPClaim. */
export type EipClaimEntry = {
  /** `namespace/name`, the same as the Pod's. */
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Undefined for a malformed claim: it may still name an EIP. */
  readonly claim: EipClaim | undefined;
  /** EIPs that the claim has, or that one of its calls concerns. */
  readonly eipIds: readonly string[];
  readonly nodeName: string | undefined;
};

const EIP_ID = /eip-[a-z0-9]{1,32}/g;

/** Decodes an EIPClaim for an informer. */
export function decodeEipClaim(object: KubeObject): EipClaimEntry {
  const { namespace = '', name, uid = '', resourceVersion = '' } = object.metadata;
  const claim = eipClaim(withoutManagedFields(object), '', new Faults());
  const status = claim?.status;
  const ofIntents = (status?.intents ?? []).map(({ eipID }) => eipID);
  // Every text in an unreadable status that has the form of an EIP id counts as the claim's EIP.
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

/** Opens the informer of EIPClaims; for the leader only. */
export function openEipClaims(deps: InformerDeps): Informer<EipClaimEntry> {
  return openInformer<EipClaimEntry>({ ...deps, type: EIP_CLAIMS, decode: decodeEipClaim, bounds: EIP_CLAIM_BOUNDS });
}

/** What is kept of EIPClaims; of one that is too large the EIPs alone, as of one that is malformed. */
const EIP_CLAIM_BOUNDS = {
  objectBytes: 65_536,
  namespaceBytes: 32 * 1_048_576,
  smallBytes: 16_384,
  instead: (object: KubeObject): EipClaimEntry => {
    const { eipIds, nodeName, ...entry } = decodeEipClaim(object);
    return { ...entry, claim: undefined, eipIds: eipIds.slice(0, MAX_EIPS), nodeName };
  },
};

const MAX_EIPS = 64;

/** All EIPClaims: from the watch, and newer ones from ipamd's own writes. */
export class EipClaimCache {
  readonly #claims: FreshStore<EipClaimEntry>;

  constructor(claims: Informer<EipClaimEntry>) {
    this.#claims = new FreshStore(claims, ({ resourceVersion }) => resourceVersion);
  }

  /** Stores the result of a write, or of a read past the watch. */
  note(object: KubeObject): void {
    const entry = decodeEipClaim(object);
    this.#claims.note(entry.key, entry);
  }

  /** Notes that a claim is gone. @param revision its last one that is known; undefined: none is */
  noteDeleted(key: string, revision: string | undefined): void {
    if (revision !== undefined) this.#claims.noteDeleted(key, revision);
  }

  /** Returns the resourceVersion of a claim as it is known; undefined: there is none. */
  revisionOf(key: string): string | undefined {
    return this.#claims.get(key)?.resourceVersion;
  }

  /** Reports whether a claim of this key exists, or existed a moment ago. */
  has(key: string): boolean {
    return this.#claims.get(key) !== undefined;
  }

  /** All claims. */
  values(): readonly EipClaimEntry[] {
    return [...this.#claims.values()];
  }

  /** Returns the EIPs of all other claims: the key of the claim by the id of the EIP. */
  rivalsOf(key: string): ReadonlyMap<string, string> {
    const rivals = new Map<string, string>();
    for (const entry of this.#claims.values()) {
      if (entry.key !== key) for (const eipId of entry.eipIds) rivals.set(eipId, entry.key);
    }
    return rivals;
  }

  /** Counts the other claims that have, or are getting, an EIP on a node. */
  usedOn(nodeName: string, exceptKey: string): number {
    let count = 0;
    for (const entry of this.#claims.values()) if (entry.nodeName === nodeName && entry.key !== exceptKey) count++;
    return count;
  }
}
