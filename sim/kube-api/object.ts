/** Metadata of a Kubernetes object, as far as the server gives it a meaning. */
export type ObjectMeta = {
  readonly name: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
  readonly managedFields?: readonly ManagedFieldsEntry[];
};

/** What an object names as its owner. */
export type OwnerReference = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
};

/** Who manages which fields, as server-side apply keeps it. */
export type ManagedFieldsEntry = {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly time: string;
  readonly fieldsType: 'FieldsV1';
  readonly fieldsV1: Tree;
  readonly subresource?: string;
};

/** A tree of `f:`, `k:` and `v:` keys. */
export type Tree = { readonly [key: string]: Tree };

/** Any Kubernetes object. Never changed in place: what is stored may be read by many at once. */
export type KubeObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
};

/** A JSON object. */
export type JsonObject = { readonly [key: string]: unknown };

/** Reports whether a value is an object with keys, neither null nor a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Compares two JSON values by content; the order of keys does not count, and an absent key equals undefined. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => isEqual(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => isEqual(a[key], b[key]));
}

/** Returns an object without one of its keys. */
export function without<T extends JsonObject>(object: T, ...keys: readonly string[]): T {
  // Only optional keys are ever named here.
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key))) as T;
}

/** Returns an object with changed metadata; a field that is undefined goes away. */
export function withMetadata(
  object: KubeObject,
  changes: { readonly [K in keyof ObjectMeta]?: ObjectMeta[K] | undefined },
): KubeObject {
  const entries = Object.entries({ ...object.metadata, ...changes }).filter(([, value]) => value !== undefined);
  // The name is never taken away: changes come from this server.
  return { ...object, metadata: Object.fromEntries(entries) as ObjectMeta };
}
