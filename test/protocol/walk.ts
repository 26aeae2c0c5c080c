import type { Model } from './explore.ts';

/**
 * Takes the given steps, each named by the beginning of its label, and returns where they lead.
 * @throws Error that lists the steps there are, when one is not among them
 */
export function walk<S>(model: Model<S>, labels: readonly string[]): S {
  let state = model.initial;
  for (const label of labels) {
    const moves = model.movesOf(state);
    const move = moves.find((candidate) => candidate.label.startsWith(label));
    if (move === undefined) throw new Error(`no step "${label}" among:\n${moves.map((one) => one.label).join('\n')}`);
    state = move.next;
  }
  return state;
}
