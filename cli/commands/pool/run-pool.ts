import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import type { ViewArgs } from './arguments.ts';
import { printView } from './print-view.ts';
import { readPool } from './read-pool.ts';
import { renderPool } from './render-pool.ts';

/** Shows the pool. @throws UserError NO_AGENT, FORBIDDEN */
export async function run({ output }: ViewArgs, context: CommandContext): Promise<ExitCode> {
  const { view } = await readPool(context);
  await printView(output, context, view, (options) => renderPool(view, options));
  return EXIT.ok;
}
