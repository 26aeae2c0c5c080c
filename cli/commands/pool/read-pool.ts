import { ifKnown } from '../../../inspection/node/known.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { isNoAgent, isSilent, isTooOld, type OpsClient, readPatiently } from '../../agent/ops-client.ts';
import type { CommandContext } from '../../command/command.ts';
import { buildAgentPool } from './build-agent-pool.ts';
import type { PoolReading } from './pool-view.ts';

/** Beginning of an error that the notice about the source repeats anyway. */
const NO_ANSWER = /^the agent does not answer: /;

/**
 * Reads the node's addresses and ENIs from the agent, or, when it does not answer, from its journal.
 * @throws UserError NO_AGENT when there is neither; FORBIDDEN
 */
export async function readPool(context: Pick<CommandContext, 'global' | 'clock'>): Promise<PoolReading> {
  try {
    const ask = (client: OpsClient) => Promise.all([client.pool(), client.summary()]);
    const [pool, summary] = await readPatiently(context.global, ask);
    const { nodeName, bridge, role } = summary;
    const agentStays = new Map(pool.enis.map(({ eniId, stays }) => [eniId, stays]));
    return { view: buildAgentPool(pool, nodeName, bridge, role), agentStays, summary };
  } catch (error) {
    if (!isNoAgent(error)) throw error;
    // Imported where it is needed: beside a running agent nothing of it is.
    const [{ readAgentFacts }, { buildJournalPool }] = await Promise.all([
      import('../../../inspection/node/read-agent-facts.ts'),
      import('./build-journal-pool.ts'),
    ]);
    const facts = readAgentFacts(context.global.stateDir);
    if (facts.kind === 'unknown') {
      throw new UserError('NO_AGENT', `${error.message}; and ${facts.why}`, error.next, { cause: error });
    }
    const { journal, node } = facts.value;
    const planned = ifKnown(node)?.enis ?? [];
    const recorded = ifKnown(node)?.node.podCidrs ?? [];
    const cidrs = recorded.filter(({ isCurrent }) => isCurrent).map(({ cidr }) => cidr);
    const view = buildJournalPool(journal, planned, context.clock.bootMs(), cidrs);
    const reading = {
      ...view,
      nodeName: view.nodeName || (ifKnown(node)?.nodeName ?? ''),
      ...(ifKnown(node)?.role === 'uplinks' ? { role: 'uplinks' as const } : {}),
      whyNoAgent: error.message.replace(NO_ANSWER, ''),
      isAgentOld: isTooOld(error),
      ...(isSilent(error) ? { isAgentSilent: true } : {}),
    };
    return { view: reading, agentStays: new Map() };
  }
}
