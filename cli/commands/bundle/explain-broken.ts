import { buildExplanation } from '../../../inspection/explain/build-explanation.ts';
import { buildExplainContext } from '../../../inspection/explain/explain-context.ts';
import { readPlannedNft } from '../../../inspection/explain/explain-node.ts';
import type { Explanation } from '../../../inspection/explain/explanation.ts';
import { openKernelLookup } from '../../../inspection/explain/open-kernel-lookup.ts';
import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import { askHandlers } from '../../agent/ask-handlers.ts';
import type { CommandContext } from '../../command/command.ts';
import { renderExplanation } from '../explain/render-explanation.ts';
import { type PartContent, textPart } from './bundle-part.ts';

/**
 * Time limit. On a node with many Pods only those explained in this time are included; the text says how many were not.
 */
const EXPLAIN_MS = 20_000;
const WIDTH = 160;

/**
 * Explains every Pod of the node as `tke-eni explain` does, and returns the explanations with a broken hop.
 * @throws UserError
 */
export async function explainBroken(
  context: Pick<CommandContext, 'global' | 'clock'>,
  signal: AbortSignal,
): Promise<PartContent> {
  const facts = await readNodeFacts(context, { handlers: () => askHandlers(context.global) });
  using kernel = openKernelLookup(context, facts);
  const explainContext = buildExplainContext(facts, await readPlannedNft(facts), kernel);
  const endMs = context.clock.monotonicMs() + EXPLAIN_MS;
  const broken: string[] = [];
  let explained = 0;
  for (const { key } of facts.pods) {
    if (signal.aborted || context.clock.monotonicMs() > endMs) break;
    const explanation = buildExplanation(explainContext, { subject: key, to: undefined, from: undefined });
    explained += 1;
    if (isBroken(explanation)) {
      broken.push(`===== ${key}\n${renderExplanation(explanation, { width: WIDTH, isColored: false })}`);
    }
    // The work is synchronous. Yield to the event loop, so that an interrupt is handled between two Pods.
    await new Promise((resolve) => setImmediate(resolve));
  }
  const head = `${facts.pods.length} Pods, ${explained} looked at, ${broken.length} broken`;
  return textPart(`${head}\n\n${broken.join('\n')}`);
}

function isBroken({ paths }: Explanation): boolean {
  return paths.some(({ hops }) => hops.some(({ verdict }) => verdict === 'broken'));
}
