import { TABLE_ENI_BASE } from '../../../dataplane/numbers.ts';
import type { EniFacts } from '../../../inspection/node/find-enis.ts';
import { joinPods, type NodePod } from '../../../inspection/node/join-pods.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';

/** A Pod's interface as the drawing shows it. */
export type GraphPod = NodePod & {
  /**
   * Table of the ENI that the Pod's addresses belong to; undefined where neither lease nor link group identifies it.
   */
  readonly eniTable: number | undefined;
};

/** Builds the views of all Pods, in the order of their names. */
export function buildPodViews(facts: NodeFacts, enis: readonly EniFacts[]): readonly GraphPod[] {
  return joinPods(facts)
    .map((pod): GraphPod => {
      const { lease, hostLink } = pod;
      const group = hostLink !== undefined && hostLink.group > TABLE_ENI_BASE ? hostLink.group : undefined;
      const leased = enis.find(({ eniId }) => eniId !== undefined && eniId === lease?.eniId);
      return { ...pod, eniTable: leased?.table ?? group };
    })
    .sort((a, b) => compareTexts(a.title, b.title) || compareTexts(a.pod.key, b.pod.key));
}

// Not localeCompare: a drawing must not differ with the locale of the terminal. Digits in names compare as numbers.
function compareTexts(a: string, b: string): number {
  const padded = (text: string) => text.replace(/\d+/g, (digits) => digits.padStart(12, '0'));
  const [left, right] = [padded(a), padded(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
