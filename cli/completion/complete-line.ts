import type { Command, CommandContext } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';
import { type Candidate, type Completion, findCompletion } from './find-completion.ts';

/** What a shell does beside the words it is given. The numbers are those of cobra, whose scripts many shells have. */
const DIRECTIVE = { files: 0, words: 4, folders: 16 } as const;

/**
 * Runs `__complete -- WORD...`: prints what may stand at the cursor, which is at the end of the last word: a word a line, with a
 * tab and what it does where that is known, and a last line ':' with what the shell does besides. It never fails: a shell does not
 * show its errors.
 * @param open the context of a command line; undefined where its options are wrong
 */
export async function completeLine(
  words: readonly string[],
  commands: readonly Command[],
  open: (options: readonly string[]) => CommandContext | undefined,
): Promise<ExitCode> {
  const completion = findCompletion(words, commands);
  const context = open(completion.places) ?? open([]);
  const candidates = await candidatesOf(completion, context);
  const lines = candidates
    .filter(({ word }) => word.startsWith(completion.typed))
    .map(({ word, help }) => (help === undefined ? word : `${word}\t${help}`));
  context?.stdout.write([...lines, `:${directiveOf(completion)}\n`].join('\n'));
  return EXIT.ok;
}

function directiveOf({ takes }: Completion): number {
  if (takes.kind === 'file') return DIRECTIVE.files;
  return takes.kind === 'folder' ? DIRECTIVE.folders : DIRECTIVE.words;
}

async function candidatesOf({ takes }: Completion, context: CommandContext | undefined): Promise<readonly Candidate[]> {
  if (takes.kind === 'words') return takes.candidates;
  if (takes.kind !== 'names' || context === undefined) return [];
  try {
    const { readCandidates } = await import('./read-candidates.ts');
    return (await readCandidates(takes.of, context)).map((word) => ({ word }));
  } catch {
    // Permission, kernel or journal is missing: the command itself reports that to the user when it runs.
    return [];
  }
}
