import type { ElementId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { buildExplanation } from '../../../inspection/explain/build-explanation.ts';
import { buildExplainContext } from '../../../inspection/explain/explain-context.ts';
import { readPlannedNft } from '../../../inspection/explain/explain-node.ts';
import type { Explanation } from '../../../inspection/explain/explanation.ts';
import { openKernelLookup } from '../../../inspection/explain/open-kernel-lookup.ts';
import { compareNode } from '../../../inspection/judge/compare-node.ts';
import { findingOf } from '../../../inspection/judge/difference.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { askHandlers } from '../../agent/ask-handlers.ts';
import type { CommandContext } from '../../command/command.ts';
import { observeNode } from '../diff/observe-node.ts';

/** What the user asks to draw; without a subject the whole node. */
type GraphQuestion = { readonly subject: string | undefined; readonly to: string | undefined };

/** Everything that a drawing is built from. */
type GraphInput = {
  readonly facts: NodeFacts;
  readonly explanations: readonly Explanation[];
  readonly findings: readonly Finding[];
  /** The element that the user named. */
  readonly named: ElementId | undefined;
};

/**
 * Reads the node, explains each of its Pods, and compares it with the agent's record where there is one. Changes
 * nothing.
 * @throws UserError when the kernel cannot be read; USAGE, NOT_FOUND for a wrong subject
 */
export async function readGraphInput(
  context: Pick<CommandContext, 'global'>,
  { subject, to }: GraphQuestion,
): Promise<GraphInput> {
  const facts = await readNodeFacts(context, { handlers: () => askHandlers(context.global) });
  using kernel = openKernelLookup(context, facts);
  const explainContext = buildExplainContext(facts, await readPlannedNft(facts), kernel);
  const named = subject === undefined ? undefined : buildExplanation(explainContext, { subject, to, from: undefined });
  const others = facts.pods.flatMap(({ key }): readonly Explanation[] => {
    if (named?.element === `pod:${key}`) return [];
    try {
      return [buildExplanation(explainContext, { subject: key, to: undefined, from: undefined })];
    } catch (error) {
      // One Pod without an address must not prevent the drawing of the others.
      if (error instanceof UserError) return [];
      throw error;
    }
  });
  return {
    facts,
    explanations: named === undefined ? others : [named, ...others],
    findings: await differences(context),
    named: named?.element,
  };
}

/**
 * Returns the differences from the agent's record. Without a record there are none, and the drawing says that it is
 * unknown.
 */
async function differences(context: Pick<CommandContext, 'global'>): Promise<readonly Finding[]> {
  try {
    return compareNode(await observeNode(context)).differences.map(findingOf);
  } catch (error) {
    if (error instanceof UserError && error.code === 'NO_JOURNAL') return [];
    throw error;
  }
}
