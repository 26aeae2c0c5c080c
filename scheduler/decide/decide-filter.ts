import type { NodeView } from '../index/scheduler-index.ts';
import { decideFit } from './decide-fit.ts';
import type { FitQuestion } from './fit-question.ts';

/** A node that does not take a Pod, and why. */
export type RefusedNode = { readonly name: string; readonly reason: string };

/** Which of the nodes take a Pod, and why the others do not. */
export type FilterOutcome = {
  readonly fitting: readonly string[];
  /** Taking Pods off these could help. */
  readonly failed: readonly RefusedNode[];
  /** With these nothing that the scheduler can do would help. */
  readonly unresolvable: readonly RefusedNode[];
  /** None takes it, and for one of them that may be over in a moment. */
  readonly isWorthWaiting: boolean;
};

/** Judges nodes; `views` are what is known of them, in the order of their names. Pure. */
export function decideFilter(
  question: FitQuestion,
  names: readonly string[],
  views: readonly (NodeView | undefined)[],
): FilterOutcome {
  const fitting: string[] = [];
  const failed: RefusedNode[] = [];
  const unresolvable: RefusedNode[] = [];
  let isPassing = false;
  for (const [index, name] of names.entries()) {
    const refusal = decideFit(question, views[index]);
    if (refusal === undefined) fitting.push(name);
    else if (refusal.isUnresolvable) unresolvable.push({ name, reason: refusal.reason });
    else failed.push({ name, reason: refusal.reason });
    isPassing ||= refusal?.isPassing === true;
  }
  return { fitting, failed, unresolvable, isWorthWaiting: fitting.length === 0 && isPassing };
}
