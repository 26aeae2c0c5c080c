/** Most addresses in one assign or unassign call. */
export const IPS_PER_CALL = 10;

/** Most ids in one describe call, and most objects on one page. */
export const IDS_PER_CALL = 100;

/** Splits a list into batches of at most `size`, in order; an empty list yields none. */
export function batchesOf<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  const batches: T[][] = [];
  for (let start = 0; start < items.length; start += size) batches.push(items.slice(start, start + size));
  return batches;
}

/** Splits a count into counts of at most `size`: 23 by 10 is 10, 10, 3. */
export function countsOf(count: number, size: number): readonly number[] {
  return Array.from({ length: Math.ceil(count / size) }, (_, index) => Math.min(size, count - index * size));
}
