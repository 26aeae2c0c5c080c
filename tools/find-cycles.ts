/**
 * Lists import cycles, each once, as the files along it with the first repeated at the end.
 * A depth-first walk: an edge back to a file that is still being walked closes a cycle.
 */
export function findCycles(edges: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const cycles: string[][] = [];
  const finished = new Set<string>();
  const walking: string[] = [];

  function walk(file: string): void {
    if (finished.has(file)) return;
    const at = walking.indexOf(file);
    if (at !== -1) {
      cycles.push([...walking.slice(at), file]);
      return;
    }
    walking.push(file);
    for (const next of edges.get(file) ?? []) walk(next);
    walking.pop();
    finished.add(file);
  }

  for (const file of [...edges.keys()].sort()) walk(file);
  return cycles;
}
