/** What may be a target: a Node or a Pod. */
type Candidate = {
  /** Another one for each candidate. */
  readonly name: string;
  readonly zone: string;
};

/**
 * Selects at most `most` candidates, as many of each zone as it goes. Of one zone those with the lowest hash of their name
 * stay, whichever others come and go.
 */
export function selectSpread<T extends Candidate>(candidates: readonly T[], most: number): readonly T[] {
  if (candidates.length <= most) return candidates;
  const zones = [...Map.groupBy(candidates, ({ zone }) => zone)]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([, its]) =>
      its
        .map((candidate) => ({ candidate, hash: hashOf(candidate.name) }))
        .toSorted((one, other) => one.hash - other.hash || (one.candidate.name < other.candidate.name ? -1 : 1))
        .map(({ candidate }) => candidate),
    );
  const selected: T[] = [];
  for (let rank = 0; selected.length < most; rank++) {
    for (const zone of zones) {
      const candidate = zone[rank];
      if (candidate !== undefined && selected.length < most) selected.push(candidate);
    }
  }
  return selected;
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  return hash >>> 0;
}
