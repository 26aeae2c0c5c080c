/**
 * Returns the smallest number of letters to insert, remove, replace or swap with the next one.
 * @see https://en.wikipedia.org/wiki/Damerau-Levenshtein_distance (optimal string alignment)
 */
export function editDistance(from: string, to: string): number {
  let beforePrevious: readonly number[] = [];
  let previous: readonly number[] = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row[j] = Math.min(
        at(previous, j) + 1,
        at(row, j - 1) + 1,
        at(previous, j - 1) + (isSame ? 0 : 1),
        swapped ? at(beforePrevious, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    beforePrevious = previous;
    previous = row;
  }
  return at(previous, to.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
