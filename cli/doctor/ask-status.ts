import { isTooOld, openOpsClient } from '../agent/ops-client.ts';
import { CliError } from '../cli-error.ts';
import { known, unknown } from '../node/known.ts';
import type { Known } from '../node/node-facts.ts';
import type { AgentStatus } from './doctor-facts.ts';

/** What the agent says of itself: how it is, that it cannot say, or why it says nothing. */
export type StatusAnswer =
  | { readonly status: Known<AgentStatus>; readonly problem?: undefined }
  | { readonly problem: string };

/** Asks the agent how it is. Never rejects. One that takes connections and does not answer has a problem. */
export async function askStatus(socket: string): Promise<StatusAnswer> {
  try {
    using client = await openOpsClient(socket);
    const { status, held, lastPassError } = await client.summary();
    if (status === undefined) return { status: unknown('the agent did not say', 'tke-eni status') };
    return { status: known({ code: status.code, message: status.msg, details: status.details, held, lastPassError }) };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    if (error.code === 'NO_AGENT' && !isTooOld(error)) return { problem: withoutPreface(error.message, socket) };
    return { status: unknown(error.message, error.next) };
  }
}

/** The finding says already that it does not answer, and on which socket. */
function withoutPreface(message: string, socket: string): string {
  return message.replace(/^the agent does not answer: /, '').replace(`the agent on ${socket}`, 'it');
}
