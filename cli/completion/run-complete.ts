import type { CommandContext } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';

/** Prints the words of a kind, one a line; nothing where they cannot be read. Never fails: nobody reads its errors. */
export async function run(
  { kind }: { readonly kind: string },
  context: Pick<CommandContext, 'global' | 'stdout'>,
): Promise<ExitCode> {
  try {
    const { readWords } = await import('./read-words.ts');
    const words = await readWords(kind, context);
    context.stdout.write(words.map((word) => `${word}\n`).join(''));
  } catch {
    // No right, no kernel, no journal: the person sees why when the command runs.
  }
  return EXIT.ok;
}
