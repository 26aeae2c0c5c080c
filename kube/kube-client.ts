import type { KubeError } from './kube-error.ts';

/** What we read of an object's metadata; whatever else is there is kept. */
export type ObjectMeta = {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
  /** RFC 3339; set while the object waits for its finalizers. */
  readonly deletionTimestamp?: string;
  readonly creationTimestamp?: string;
};

/** Who an object goes with. @see metav1.OwnerReference */
export type OwnerReference = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
};

/** Any Kubernetes object, whole: fields that we do not know go back as they came. */
export type KubeObject = Readonly<Record<string, unknown>> & {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
};

/** A resource of the API: what its path is made of. */
export type ResourceType = {
  /** '' for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /** What is made of an object that is there: `binding` of a Pod. Only `create` knows it; it answers with what was sent. */
  readonly subresource?: 'binding';
};

/** One object of a resource. */
export type ObjectRef = { readonly namespace?: string; readonly name: string };

/** Which objects of a resource. Absent namespace: all. */
export type ObjectQuery = {
  readonly namespace?: string;
  /** `metadata.name=n1`, `spec.nodeName=n1` */
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
};

/** One page of a list. */
export type ListPage = {
  readonly items: readonly KubeObject[];
  /** Of the whole list: where a watch goes on. */
  readonly resourceVersion: string;
  /** Present when there is more. */
  readonly continueToken?: string;
};

/** What a watch tells. */
export type WatchEvent =
  | { readonly kind: 'added' | 'modified' | 'deleted'; readonly object: KubeObject }
  | { readonly kind: 'bookmark'; readonly resourceVersion: string };

/** A change of part of an object. @see RFC 7386 (merge), RFC 6902 (json), strategic merge patch of Kubernetes */
export type ObjectPatch = {
  readonly kind: 'merge' | 'json' | 'strategic';
  readonly body: unknown;
  /** `status` of nodes and Pods; our own kinds have none. */
  readonly subresource?: 'status';
};

/** What must hold for a deletion to happen. */
export type DeletePreconditions = { readonly uid?: string; readonly resourceVersion?: string };

/**
 * The API server, as far as we use it. Every call goes through one limit of calls a second, waits for its turn, and
 * fails with a KubeError ({@link KubeError}) or the signal's reason; nothing is repeated here but what is safe to be.
 */
export type KubeClient = {
  /** Undefined when there is none. */
  get(type: ResourceType, ref: ObjectRef, signal?: AbortSignal): Promise<KubeObject | undefined>;
  /** @throws KubeError EXPIRED when the token of the next page is too old: begin again. */
  listPage(
    type: ResourceType,
    query: ObjectQuery & { readonly limit?: number; readonly continueToken?: string },
    signal?: AbortSignal,
  ): Promise<ListPage>;
  /** Ends when the server closes it, which it does now and then. @throws KubeError EXPIRED (410): list again. */
  watch(
    type: ResourceType,
    query: ObjectQuery & { readonly resourceVersion: string },
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent>;
  /** @throws KubeError ALREADY_EXISTS */
  create(type: ResourceType, object: KubeObject, signal?: AbortSignal): Promise<KubeObject>;
  /** Replaces; guarded when the object has a resourceVersion. @throws KubeError CONFLICT, NOT_FOUND */
  update(type: ResourceType, object: KubeObject, signal?: AbortSignal): Promise<KubeObject>;
  /** @throws KubeError CONFLICT, NOT_FOUND */
  patch(type: ResourceType, ref: ObjectRef, patch: ObjectPatch, signal?: AbortSignal): Promise<KubeObject>;
  /** Returns false when there was none. @throws KubeError CONFLICT when a precondition does not hold */
  delete(type: ResourceType, ref: ObjectRef, only?: DeletePreconditions, signal?: AbortSignal): Promise<boolean>;
  /** The same server past the queue of all other calls, for the few that must not wait: leader election. */
  readonly urgent?: KubeClient;
};
