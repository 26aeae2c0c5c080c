import { openOpsClient } from '../agent/ops-client.ts';
import { CliError } from '../cli-error.ts';
import { known, unknown } from '../node/known.ts';
import type { Known } from '../node/node-facts.ts';
import type { AgentStatus } from './doctor-facts.ts';

/** Asks the agent how it is. Never rejects: what it does not tell is unknown. */
export async function askStatus(socket: string): Promise<Known<AgentStatus>> {
  try {
    using client = await openOpsClient(socket);
    const { status, held, lastPassError } = await client.summary();
    if (status === undefined) return unknown('the agent did not say', 'tke-eni status');
    return known({ code: status.code, message: status.msg, details: status.details, held, lastPassError });
  } catch (error) {
    if (error instanceof CliError) return unknown(error.message, error.next);
    throw error;
  }
}
