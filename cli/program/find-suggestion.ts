import { editDistance } from '../../runtime/edit-distance.ts';

/** Finds the word that a user who typed `typed` most likely meant; undefined when none is similar. */
export function findSuggestion(typed: string, known: readonly string[]): string | undefined {
  if (typed === '') return undefined;
  const started = known.filter((word) => word.startsWith(typed));
  if (started.length === 1) return started[0];
  const limit = typed.length <= 3 ? 1 : typed.length <= 6 ? 2 : 3;
  let best: { readonly word: string; readonly distance: number } | undefined;
  for (const word of known) {
    const distance = editDistance(typed, word);
    if (distance <= limit && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) best = { word, distance };
  }
  return best?.word;
}
