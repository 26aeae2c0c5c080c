import { renderExplanation } from '../../../cli/commands/explain/render-explanation.ts';
import type { Explanation } from '../../../inspection/explain/explanation.ts';

/** The finding of the first broken hop of each path that has one. */
export function firstBroken({ paths }: Explanation): readonly (string | undefined)[] {
  return paths.flatMap(({ hops }) => {
    const hop = hops.find(({ verdict }) => verdict === 'broken');
    return hop === undefined ? [] : [hop.finding?.id];
  });
}

/** The whole walk, for the report of a failure. */
export function report(explanation: Explanation): string {
  return renderExplanation(explanation, { width: 160, isColored: false });
}
