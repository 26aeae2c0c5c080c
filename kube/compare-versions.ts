/** Where and when an object was read. */
type ObjectVersion = { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined };

/** Compares two states of an object: below 0 when the first is older; undefined where that cannot be determined. */
export function compareVersions(one: ObjectVersion, other: ObjectVersion): number | undefined {
  if (one.uid !== other.uid) return undefined;
  const [first, second] = [one.resourceVersion ?? '', other.resourceVersion ?? ''];
  if (first === second) return 0;
  // Versions are opaque by contract and numbers in practice; where they are not numbers, the API server is asked.
  if (!/^\d+$/.test(first) || !/^\d+$/.test(second)) return undefined;
  return BigInt(first) < BigInt(second) ? -1 : 1;
}
