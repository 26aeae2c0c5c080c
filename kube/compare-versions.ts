/** Where and when an object was read. */
export type ObjectVersion = { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined };

/** Compares two states of an object: below 0 when the first is older; undefined where that cannot be determined. */
export function compareVersions(one: ObjectVersion, other: ObjectVersion): number | undefined {
  if (one.uid !== other.uid) return undefined;
  return compareRevisions(one.resourceVersion ?? '', other.resourceVersion ?? '');
}

/**
 * Compares two revisions of a server, also of different objects: below 0 when the first is older; undefined where one is no
 * number. @see KEP-5504
 */
export function compareRevisions(one: string, other: string): number | undefined {
  if (one === other) return 0;
  if (!/^\d+$/.test(one) || !/^\d+$/.test(other)) return undefined;
  // As texts: a server that writes a million digits must not keep us busy.
  if (one.length !== other.length) return one.length < other.length ? -1 : 1;
  return one < other ? -1 : 1;
}
