/**
 * How long after the begin of a term a write of the former leader may still have its effect: its request is on the way,
 * or the API server works on it.
 */
const FORMER_WRITES_MS = 60_000;

/**
 * Tells whether a state of an object that this leader did not write may be the last write of the former leader. That is
 * guarded by the resourceVersion, so none comes after the first write of this leader (`isWritten`).
 */
export function mayBeFormerWrite(
  { isWritten }: { readonly isWritten: boolean },
  term: { readonly startedMs: number },
  nowMs: number,
): boolean {
  return !isWritten && nowMs - term.startedMs < FORMER_WRITES_MS;
}
