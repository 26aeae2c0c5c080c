import type { CommandContext } from '../../command/command.ts';
import { printDocument } from '../../output/print-document.ts';
import type { OutputFormat } from './output-option.ts';
import type { RenderOptions } from './render-pool.ts';

/** Prints a view in the requested format: `document` for programs, the result of `render` for people. */
export async function printView(
  format: OutputFormat,
  { stdout }: Pick<CommandContext, 'stdout'>,
  document: unknown,
  render: (options: RenderOptions) => string,
): Promise<void> {
  if (format === 'json' || format === 'yaml') return printDocument(document, format, stdout);
  const width = format === 'wide' ? Number.POSITIVE_INFINITY : stdout.columns();
  stdout.write(render({ width, isColored: stdout.isColored }));
}
