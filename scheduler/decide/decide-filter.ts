import type { NodeView } from '../index/scheduler-index.ts';
import { decideFit, type FitQuestion } from './decide-fit.ts';

/** Which of the nodes take a Pod, and why the others do not. */
export type FilterOutcome = {
  readonly fitting: readonly string[];
  /** Node -> reason, where taking Pods off it could help. */
  readonly failed: Readonly<Record<string, string>>;
  /** Node -> reason, where nothing that the scheduler can do would help. */
  readonly unresolvable: Readonly<Record<string, string>>;
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
  const failed: Record<string, string> = {};
  const unresolvable: Record<string, string> = {};
  let isPassing = false;
  for (const [index, name] of names.entries()) {
    const refusal = decideFit(question, views[index]);
    if (refusal === undefined) fitting.push(name);
    else if (refusal.isUnresolvable) unresolvable[name] = refusal.reason;
    else failed[name] = refusal.reason;
    isPassing ||= refusal?.isPassing === true;
  }
  return { fitting, failed, unresolvable, isWorthWaiting: fitting.length === 0 && isPassing };
}
