import { IDS_PER_CALL } from '../../cloud/batches.ts';

/** Most requests of one sweep: what 5,000 Nodes take. */
const MAX_BATCHES = 50;

/** Instances to describe in one sweep. */
type AskedInstances = {
  /** Described by the last answer, or never asked for; the longest not asked first. */
  readonly present: readonly string[];
  /** The last answer lacked them; the longest not asked first. */
  readonly missing: readonly string[];
  /** Instances of Ready Nodes. */
  readonly ready: readonly string[];
};

/**
 * Plans the requests of a sweep, at most fifty of a hundred ids. An answer without any instance proves nothing: it is
 * that of another region, of a key without rights, or an empty page. So missing instances are dealt among present ones,
 * and a request that is not full gets the instance of a Ready Node too.
 */
export function planBatches({ present, missing, ready }: AskedInstances): readonly (readonly string[])[] {
  const total = present.length + missing.length;
  const fewest = Math.ceil(total / IDS_PER_CALL);
  const hasCapacity = present.length >= fewest || ready.length === 0;
  const size = hasCapacity ? IDS_PER_CALL : IDS_PER_CALL - 1;
  const count = Math.min(MAX_BATCHES, Math.ceil(total / size));
  if (count === 0) return [];
  const batches = Array.from({ length: count }, (): string[] => []);
  const lacked = new Set(missing);
  const cut = [...interleaved(missing, present)].slice(0, count * size);
  // One after the other round the requests, so that none gets missing ones only.
  const kept = [...cut.filter((id) => lacked.has(id)), ...cut.filter((id) => !lacked.has(id))];
  for (const [index, id] of kept.entries()) batches[index % count]?.push(id);
  return batches.map((batch, index) => {
    const witness = ready[index % Math.max(1, ready.length)];
    return witness === undefined || batch.length >= IDS_PER_CALL ? batch : [...batch, witness];
  });
}

/** Spreads the shorter list evenly over the longer one, so that a cut leaves some of both. */
function* interleaved(first: readonly string[], second: readonly string[]): Iterable<string> {
  let [left, right] = [0, 0];
  while (left < first.length || right < second.length) {
    const isFirst = right >= second.length || (left < first.length && left * second.length <= right * first.length);
    yield (isFirst ? first[left++] : second[right++]) ?? '';
  }
}
