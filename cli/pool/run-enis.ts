import type { CommandContext } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import { renderWarning } from '../output/render-error.ts';
import type { ViewArgs } from './command.ts';
import { printView } from './print-view.ts';
import { readPool } from './read-pool.ts';
import { eniRows, renderEnis } from './render-enis.ts';
import { sourceNotice } from './render-pool.ts';

/** Shows the ENIs. @throws CliError NO_AGENT, FORBIDDEN */
export async function run({ output }: ViewArgs, context: CommandContext): Promise<ExitCode> {
  const view = await readPool(context);
  const notice = sourceNotice(view);
  if (notice !== undefined) context.stderr.write(renderWarning(notice, context.stderr.isColored));
  const rows = eniRows(view);
  await printView(output, context, rows, (options) => renderEnis(rows, options));
  return EXIT.ok;
}
