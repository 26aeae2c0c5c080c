import { UserError } from '../../../runtime/user-error.ts';
import { type AgentPlace, openOpsClient } from '../../agent/ops-client.ts';

/**
 * Adds to the error of a Pod that is not on this node what the API server refuses the agent: a Pod that waits for an
 * address is not there for that reason. Other errors, and what a silent agent has to do with it, stay as they are.
 */
export async function nameRefusal(error: unknown, place: AgentPlace): Promise<unknown> {
  if (!(error instanceof UserError) || error.code !== 'NOT_FOUND') return error;
  try {
    using client = await openOpsClient(place);
    const { apiFailures } = await client.summary();
    const failure = apiFailures.find(({ isNeededByPods }) => isNeededByPods);
    if (failure === undefined) return error;
    const next = `a Pod that has no address yet waits for this: ${failure.summary}; else ${error.next}`;
    return new UserError('NOT_FOUND', error.message, next, { cause: error });
  } catch (silence) {
    if (silence instanceof UserError) return error;
    throw silence;
  }
}
