/** One case of a table: a value for each factor. */
type Case = Readonly<Record<string, string>>;

/**
 * Picks from a complete table cases in which every pair of values of two factors occurs that occurs in the table at all.
 * Greedy: first what covers most pairs that are still missing. The order of the table decides between equals.
 */
export function pickPairwise<T extends Case>(table: readonly T[]): readonly T[] {
  const missing = new Set(table.flatMap(pairsOf));
  const picked: T[] = [];
  while (missing.size > 0) {
    const gain = (one: T): number => pairsOf(one).filter((pair) => missing.has(pair)).length;
    const best = table.reduce((before, one) => (gain(one) > gain(before) ? one : before));
    for (const pair of pairsOf(best)) missing.delete(pair);
    picked.push(best);
  }
  return picked;
}

function pairsOf(one: Case): readonly string[] {
  const values = Object.entries(one).map(([factor, value]) => `${factor}=${value}`);
  return values.flatMap((left, at) => values.slice(at + 1).map((right) => `${left} ${right}`));
}
