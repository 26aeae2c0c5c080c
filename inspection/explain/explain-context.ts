import { assessNode, type NodeAssessment } from '../judge/assess-node.ts';
import { buildNodeModel, type NodeModel } from '../model/node-model.ts';
import type { Known, NodeFacts } from '../node/node-facts.ts';
import type { KernelLookup, ReadFollowedFlows } from './kernel-answer.ts';

/** Everything that an explanation is built from: the node, and ways to ask the kernel at the moment of the question. */
export type ExplainContext = NodeModel & {
  /**
   * The nftables table of tke-eni as planned, in the format of the installed nft; unknown without the agent's record.
   */
  readonly plannedNft: Known<string>;
  /** Says what is wrong with an element that a packet meets. */
  readonly assessment: NodeAssessment;
  readonly lookup: KernelLookup;
  readonly readFlows: ReadFollowedFlows;
};

/** Adds to the model of a node what is wrong with it, and how the kernel is asked. */
export function buildExplainContext(
  facts: NodeFacts,
  plannedNft: Known<string>,
  { lookup, readFlows }: Pick<ExplainContext, 'lookup' | 'readFlows'>,
): ExplainContext {
  const model = buildNodeModel(facts);
  return { ...model, plannedNft, assessment: assessNode(model, plannedNft), lookup, readFlows };
}
