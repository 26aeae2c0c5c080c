import { isNoAgent, openOpsClient } from '../agent/ops-client.ts';
import type { CommandContext } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import { printView } from '../pool/print-view.ts';
import { readPool } from '../pool/read-pool.ts';
import type { StatusArgs } from './arguments.ts';
import { buildStatus, isHealthy, type NodeStatus } from './build-status.ts';
import { renderStatus } from './render-status.ts';

/** Shows the state of the agent. @throws CliError FORBIDDEN; NO_AGENT when there is neither an agent nor its journal */
export async function run({ output, 'all-addresses': isFull }: StatusArgs, context: CommandContext): Promise<ExitCode> {
  const status = await readStatus(context);
  const document = isFull ? status : { ...status, pool: { ...status.pool, addresses: undefined } };
  await printView(output, context, document, (options) => renderStatus(status, { ...options, isFull }));
  return isHealthy(status) ? EXIT.ok : EXIT.wrong;
}

/** Reads the state from the agent, or from its journal. @throws CliError FORBIDDEN, NO_AGENT */
export async function readStatus(context: Pick<CommandContext, 'global' | 'clock'>): Promise<NodeStatus> {
  const { view: pool } = await readPool(context);
  if (pool.source === 'journal') return buildStatus(pool, undefined);
  try {
    using client = await openOpsClient(context.global.socket);
    return buildStatus(pool, await client.summary());
  } catch (error) {
    // The agent stopped between the two calls.
    if (isNoAgent(error)) return buildStatus({ ...pool, whyNoAgent: error.message }, undefined);
    throw error;
  }
}
