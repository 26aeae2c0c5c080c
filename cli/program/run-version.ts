import { release } from '../../runtime/release.ts';
import type { CommandContext } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';

/** Prints the release. */
export async function run(_args: unknown, context: Pick<CommandContext, 'stdout'>): Promise<ExitCode> {
  context.stdout.write(`${release}\n`);
  return EXIT.ok;
}
