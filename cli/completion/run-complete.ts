import type { CommandContext } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';

/**
 * Runs `__complete`: prints the words of a kind, one per line, or nothing where they cannot be read. It never fails: a
 * shell does not show its errors.
 */
export async function run(
  { kind }: { readonly kind: string },
  context: Pick<CommandContext, 'global' | 'stdout'>,
): Promise<ExitCode> {
  try {
    const { readCandidates } = await import('./read-candidates.ts');
    const candidates = await readCandidates(kind, context);
    context.stdout.write(candidates.map((candidate) => `${candidate}\n`).join(''));
  } catch {
    // Permission, kernel or journal is missing: the command itself reports that to the user when it runs.
  }
  return EXIT.ok;
}
