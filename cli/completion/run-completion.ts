import type { CommandContext } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';
import { SHELL_SCRIPTS } from './shell-scripts.ts';

/** Prints the script of a shell. */
export async function run(
  { shell }: { readonly shell: string },
  { stdout }: Pick<CommandContext, 'stdout'>,
): Promise<ExitCode> {
  stdout.write(SHELL_SCRIPTS[shell as keyof typeof SHELL_SCRIPTS] ?? SHELL_SCRIPTS.bash);
  return EXIT.ok;
}
