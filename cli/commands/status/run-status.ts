import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { printView } from '../pool/print-view.ts';
import { readPool } from '../pool/read-pool.ts';
import type { StatusArgs } from './arguments.ts';
import { buildStatus, isHealthy, type NodeStatus } from './build-status.ts';
import { renderStatus } from './render-status.ts';

/** Shows the state of the agent. @throws UserError FORBIDDEN; NO_AGENT when there is neither an agent nor its journal */
export async function run({ output, 'all-addresses': isFull }: StatusArgs, context: CommandContext): Promise<ExitCode> {
  const status = await readStatus(context);
  const document = isFull ? status : { ...status, pool: { ...status.pool, addresses: undefined } };
  await printView(output, context, document, (options) => renderStatus(status, { ...options, isFull }));
  return isHealthy(status) ? EXIT.ok : EXIT.wrong;
}

/** Reads the state from the agent, or from its journal. @throws UserError FORBIDDEN, NO_AGENT */
export async function readStatus(context: Pick<CommandContext, 'global' | 'clock'>): Promise<NodeStatus> {
  const { view, summary } = await readPool(context);
  return buildStatus(view, summary);
}
