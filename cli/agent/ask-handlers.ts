import { UserError } from '../../runtime/user-error.ts';
import { type AgentPlace, openOpsClient } from './ops-client.ts';

/** Asks the agent for the handlers of the Pods' runtimes, by container id. Empty when it does not answer, or is too old. */
export async function askHandlers(place: AgentPlace): Promise<ReadonlyMap<string, string>> {
  try {
    using client = await openOpsClient(place);
    const { addresses } = await client.pool({ runtimeHandlers: true });
    return new Map(
      addresses.flatMap(({ containerId, runtimeHandler }) =>
        runtimeHandler === '' ? [] : [[containerId, runtimeHandler] as const],
      ),
    );
  } catch (error) {
    if (error instanceof UserError) return new Map();
    throw error;
  }
}
