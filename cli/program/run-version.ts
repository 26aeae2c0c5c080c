import { release } from '../../runtime/release.ts';
import type { CommandContext } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';

/** Prints the release. */
export async function run(_args: unknown, context: Pick<CommandContext, 'stdout'>): Promise<ExitCode> {
  context.stdout.write(`${release}\n`);
  return EXIT.ok;
}
