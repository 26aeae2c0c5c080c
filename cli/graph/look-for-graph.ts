import { CliError } from '../cli-error.ts';
import { findingOf } from '../diff/difference.ts';
import { diffNode } from '../diff/find-differences.ts';
import { lookAtNode } from '../diff/look-at-node.ts';
import type { Explanation } from '../explain/explanation.ts';
import { findExplanation } from '../explain/find-explanation.ts';
import { findSituation } from '../explain/find-situation.ts';
import { openKernelQuestions } from '../explain/open-kernel-questions.ts';
import { wantedNft } from '../explain/run-explain.ts';
import type { Finding } from '../finding.ts';
import type { ElementId } from '../node/element-id.ts';
import type { NodeFacts } from '../node/node-facts.ts';
import { type NodeContext, readNodeFacts } from '../node/read-node-facts.ts';

/** What the user asks to draw; without a subject the whole node. */
type GraphQuestion = { readonly subject: string | undefined; readonly to: string | undefined };

/** Everything that a drawing is built from. */
type GraphSight = {
  readonly facts: NodeFacts;
  readonly explanations: readonly Explanation[];
  readonly findings: readonly Finding[];
  /** The element that the user named. */
  readonly asked: ElementId | undefined;
};

/**
 * Reads the node, explains each of its Pods, and compares it with the agent's record where there is one. Changes
 * nothing.
 * @throws CliError when the kernel cannot be read; USAGE, NOT_FOUND for a wrong subject
 */
export async function lookForGraph(context: NodeContext, { subject, to }: GraphQuestion): Promise<GraphSight> {
  const facts = await readNodeFacts(context, { insides: 'all' });
  using kernel = openKernelQuestions(context, facts);
  const situation = findSituation(facts, await wantedNft(facts), kernel.ask);
  const asked = subject === undefined ? undefined : findExplanation(situation, { subject, to, from: undefined });
  const others = facts.pods.flatMap(({ key }): readonly Explanation[] => {
    if (asked?.element === `pod:${key}`) return [];
    try {
      return [findExplanation(situation, { subject: key, to: undefined, from: undefined })];
    } catch (error) {
      // One Pod without an address must not prevent the drawing of the others.
      if (error instanceof CliError) return [];
      throw error;
    }
  });
  return {
    facts,
    explanations: asked === undefined ? others : [asked, ...others],
    findings: await differences(context),
    asked: asked?.element,
  };
}

/**
 * Returns the differences from the agent's record. Without a record there are none, and the drawing says that it is
 * unknown.
 */
async function differences(context: NodeContext): Promise<readonly Finding[]> {
  try {
    return diffNode(await lookAtNode(context)).differences.map(findingOf);
  } catch (error) {
    if (error instanceof CliError && error.code === 'NO_JOURNAL') return [];
    throw error;
  }
}
