import type { KubeError } from './kube-error.ts';

/** The metadata fields that are read; all others are preserved. */
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
  /** RFC 3339; set while finalizers delay the deletion. */
  readonly deletionTimestamp?: string;
  readonly creationTimestamp?: string;
};

/** The owner of an object: its deletion deletes the object. @see metav1.OwnerReference */
export type OwnerReference = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
};

/** A whole Kubernetes object: unknown fields are written back unchanged. */
export type KubeObject = Readonly<Record<string, unknown>> & {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
};

/** A resource of the API: the components of its path. */
export type ResourceType = {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /**
   * A subresource that is created for an existing object: `binding` of a Pod. Only `create` uses it, and returns what
   * was sent.
   */
  readonly subresource?: 'binding';
  /** A question that the server answers and does not store: only `create` uses it, and the answer has no name. */
  readonly isQuestion?: true;
};

/** Namespace and name of one object. */
export type ObjectRef = { readonly namespace?: string; readonly name: string };

/** Selects objects of a resource. Absent namespace: all namespaces. */
export type ObjectQuery = {
  readonly namespace?: string;
  /** `metadata.name=n1`, `spec.nodeName=n1` */
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
};

/** One page of a list. */
export type ListPage = {
  readonly items: readonly KubeObject[];
  /** The version of the whole list: a watch continues from it. */
  readonly resourceVersion: string;
  /** Present when there are more pages. */
  readonly continueToken?: string;
};

/** An event of a watch. */
export type WatchEvent =
  | { readonly kind: 'added' | 'modified' | 'deleted'; readonly object: KubeObject }
  | { readonly kind: 'bookmark'; readonly resourceVersion: string };

/** A change of a part of an object. @see RFC 7386 (merge), RFC 6902 (json), strategic merge patch of Kubernetes */
export type ObjectPatch = {
  readonly kind: 'merge' | 'json' | 'strategic';
  readonly body: unknown;
  /** `status` of Nodes and Pods; the kinds of this project have no status subresource. */
  readonly subresource?: 'status';
};

/** Conditions without which a deletion fails. */
export type DeletePreconditions = { readonly uid?: string; readonly resourceVersion?: string };

/**
 * The API server, as far as this project uses it.
 *
 * All calls share one rate limit and wait for it. A call fails with a {@link KubeError} or with the signal's reason.
 * Only what is safe to repeat is repeated here.
 */
export type KubeClient = {
  /** Returns undefined when the object does not exist. */
  get(type: ResourceType, ref: ObjectRef, signal?: AbortSignal): Promise<KubeObject | undefined>;
  /**
   * Reads one page. @throws KubeError EXPIRED when the token of the next page is too old: list again from the start.
   */
  listPage(
    type: ResourceType,
    query: ObjectQuery & { readonly limit?: number; readonly continueToken?: string },
    signal?: AbortSignal,
  ): Promise<ListPage>;
  /**
   * Ends when the server closes it, which happens regularly. `onOpen` is called once the server has accepted it: nothing
   * need follow for minutes. @throws KubeError EXPIRED (410): list again.
   */
  watch(
    type: ResourceType,
    query: ObjectQuery & { readonly resourceVersion: string },
    signal: AbortSignal,
    onOpen?: () => void,
  ): AsyncIterable<WatchEvent>;
  /** Creates an object. @throws KubeError ALREADY_EXISTS */
  create(type: ResourceType, object: KubeObject, signal?: AbortSignal): Promise<KubeObject>;
  /** Replaces an object; guarded when it has a resourceVersion. @throws KubeError CONFLICT, NOT_FOUND */
  update(type: ResourceType, object: KubeObject, signal?: AbortSignal): Promise<KubeObject>;
  /** Changes a part of an object. @throws KubeError CONFLICT, NOT_FOUND */
  patch(type: ResourceType, ref: ObjectRef, patch: ObjectPatch, signal?: AbortSignal): Promise<KubeObject>;
  /**
   * Deletes an object; returns false when it did not exist. @throws KubeError CONFLICT when a precondition does not
   * hold
   */
  delete(type: ResourceType, ref: ObjectRef, only?: DeletePreconditions, signal?: AbortSignal): Promise<boolean>;
  /**
   * The wall clock of the server now, milliseconds since the epoch, by its last answer; undefined before the first. Absent where
   * it is not known.
   */
  readonly serverMs?: () => number | undefined;
  /** The same server with a rate limit of its own, for the few calls that must not wait for others: leader election. */
  readonly urgent?: KubeClient;
};
