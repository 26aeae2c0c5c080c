/** Where and when an object was read. */
export type ObjectVersion = { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined };

/** Compares two states of an object: below 0 when the first is older; undefined where that cannot be determined. */
export function compareVersions(one: ObjectVersion, other: ObjectVersion): number | undefined {
  if (one.uid !== other.uid) return undefined;
  return compareRevisions(one.resourceVersion ?? '', other.resourceVersion ?? '');
}

/**
 * Tells whether an object was written before `known`. The two may be different objects: all writes of a server share one series
 * of revisions. False where that cannot be determined. @see KEP-5504
 */
export function isEarlier(
  { metadata }: { readonly metadata: ObjectVersion },
  known: { readonly metadata: ObjectVersion } | undefined,
): boolean {
  return (compareRevisions(metadata.resourceVersion ?? '', known?.metadata.resourceVersion ?? '') ?? 0) < 0;
}

/**
 * Compares two revisions of a server: below 0 when the first is older. Versions are opaque by contract and numbers in practice;
 * undefined where they are not numbers: then the API server is asked.
 */
export function compareRevisions(one: string, other: string): number | undefined {
  if (one === other) return 0;
  if (!/^\d+$/.test(one) || !/^\d+$/.test(other)) return undefined;
  // As texts: a server that writes a million digits must not keep us busy.
  if (one.length !== other.length) return one.length < other.length ? -1 : 1;
  return one < other ? -1 : 1;
}
