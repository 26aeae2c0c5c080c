import { canonicalAddress } from '../../dataplane/ip-prefix.ts';
import { type Nft, openNft } from '../../dataplane/nft.ts';
import { NftError } from '../../dataplane/nft-error.ts';
import { PlanError } from '../../dataplane/plan-node.ts';
import { desiredOf } from '../desired/desired-of.ts';
import type { ReadHandlers } from '../node/hide-taken.ts';
import { joinPods, type NodePod } from '../node/join-pods.ts';
import { ifKnown, known, unknown } from '../node/known.ts';
import type { Known, NodeFacts } from '../node/node-facts.ts';
import { readAgentFacts } from '../node/read-agent-facts.ts';
import { type NodeContext, readNodeFacts } from '../node/read-node-facts.ts';
import { buildExplanation, type ExplainQuestion } from './build-explanation.ts';
import { buildExplainContext } from './explain-context.ts';
import type { Explanation } from './explanation.ts';
import { openKernelLookup } from './open-kernel-lookup.ts';

/** Up to this number of Pods, all of them are read. On fuller nodes: the named ones, and two for the default paths. */
const FEW_PODS = 16;

/** Limits and helpers of a process that goes on after the explanation; none by default. */
type ExplainPorts = {
  /** Largest ruleset of nftables, bytes; a larger one is not known. */
  readonly maxNftBytes?: number;
  /** Remembers how nft lists the planned table. */
  readonly nft?: Pick<Nft, 'canonical'>;
  /** Asks for the handlers of runtimes, where a Pod's addresses are gone. */
  readonly handlers?: ReadHandlers;
};

/**
 * Reads the node and explains: in the command `explain`, in others that show paths, and in the agent, which answers the
 * command. It remembers nothing. @throws UserError USAGE, NOT_FOUND, FORBIDDEN, KERNEL
 */
export async function explainNode(
  context: NodeContext,
  question: ExplainQuestion,
  { maxNftBytes, nft = openNft(), handlers }: ExplainPorts = {},
): Promise<{ readonly explanation: Explanation; readonly facts: NodeFacts }> {
  const insides = await podsToRead(context, question);
  const limit = maxNftBytes === undefined ? {} : { maxNftBytes };
  const facts = await readNodeFacts(context, {
    insides,
    sysctls: 'when-asked',
    ...limit,
    ...(handlers && { handlers }),
  });
  using kernel = openKernelLookup(context, facts);
  const explainContext = buildExplainContext(facts, await readPlannedNft(facts, nft), kernel);
  return { explanation: buildExplanation(explainContext, question), facts };
}

/**
 * Selects the Pods to read. Reading each of hundreds of Pods takes seconds, so on a full node only the named ones are
 * read.
 */
async function podsToRead(
  context: NodeContext,
  { subject, to, from }: ExplainQuestion,
): Promise<(key: string) => boolean> {
  // The journal has a lease for each Pod: of few Pods the kernel is read once, not twice.
  const recorded = ifKnown(readAgentFacts(context.global.stateDir))?.journal.leases;
  if (recorded !== undefined && recorded.length <= FEW_PODS) return () => true;
  const brief = await readNodeFacts(context, { insides: 'none', nft: false, sysctls: false });
  if (brief.pods.length <= FEW_PODS) return () => true;
  const names = [subject, to, from].filter((name) => name !== undefined).map(canonicalAddress);
  const isNamed = ({ pod, lease, hostLink, ips }: NodePod): boolean => {
    const aliases = [hostLink?.ifname, lease?.podName, `${lease?.podNamespace}/${lease?.podName}`, ...ips];
    return names.some((name) => aliases.includes(name) || pod.key.startsWith(name));
  };
  const few = joinPods(brief)
    .filter((pod, index) => index < 2 || isNamed(pod))
    .map(({ pod }) => pod.key);
  return (key) => few.includes(key);
}

/** Returns the planned nftables table of tke-eni in the format in which the installed nft would list it. */
export async function readPlannedNft(
  facts: NodeFacts,
  nft: Pick<Nft, 'canonical'> = openNft(),
): Promise<Known<string>> {
  const agent = ifKnown(facts.agent);
  if (agent === undefined || agent.node.kind === 'unknown') {
    return unknown('the agent left no record of the node', 'start the agent');
  }
  try {
    const text = desiredOf(agent, facts.host.links).host.nft?.text;
    return text === undefined ? unknown('no nftables table is planned', '') : known(await nft.canonical(text));
  } catch (error) {
    if (error instanceof PlanError || error instanceof NftError) return unknown(error.message, 'tke-eni diff');
    throw error;
  }
}
