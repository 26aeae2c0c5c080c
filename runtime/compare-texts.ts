/**
 * Compares two texts by their UTF-16 units, for `toSorted`: below 0, 0 or above 0. Unlike `localeCompare`, the order of names,
 * uids and RFC 3339 times is the same in every process.
 */
export function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
