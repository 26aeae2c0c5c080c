import type { Command, CommandContext, OptionSpec, OptionTable, PositionalSpec } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';
import { GLOBAL_OPTIONS } from '../command/global-options.ts';

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

/** One word that may stand at the cursor. One that ends with '=' wants a value behind it, without a blank. */
type Candidate = { readonly word: string; readonly help?: string };

/** What may stand at the cursor: fixed words, names of this node, files, folders, or something that is not known before. */
export type Completion = {
  /** What is typed of it, behind the '=' of an option: candidates begin with it. */
  readonly typed: string;
  readonly takes:
    | { readonly kind: 'words'; readonly candidates: readonly Candidate[] }
    | { readonly kind: 'names'; readonly of: 'pod' | 'eni' | 'table' | 'netns' }
    | { readonly kind: 'file' | 'folder' };
  /** Options of the line that say which node is meant, as `--netns=…`. */
  readonly places: readonly string[];
};

/** Global options that say where names are read. */
const PLACES: ReadonlySet<string> = new Set([
  'netns',
  'state-dir',
  'host-root',
] satisfies (keyof typeof GLOBAL_OPTIONS)[]);
const NOTHING = { kind: 'words', candidates: [] } as const;

/** Finds what may stand at the cursor. @param words those behind the program's name; the last one is typed, perhaps '' */
export function findCompletion(words: readonly string[], commands: readonly Command[]): Completion {
  const typed = words.at(-1) ?? '';
  const line = readWords(words.slice(0, -1), commands);
  const { places, command, options } = line;
  const of = (takes: Completion['takes'], begun = typed): Completion => ({ typed: begun, takes, places });
  if (line.awaited !== undefined) return of(takesOf(line.awaited, commands));
  const [, name, value] = /^(--?[^=]+)=(.*)$/s.exec(typed) ?? [];
  if (name !== undefined && value !== undefined && !line.isOnlyWords) {
    const spec = findOption(options, name)?.spec;
    return of(spec === undefined || spec.type === 'boolean' ? NOTHING : takesOf(spec, commands), value);
  }
  if (typed.startsWith('-') && !line.isOnlyWords) return of({ kind: 'words', candidates: optionCandidates(options) });
  if (command === undefined) return of({ kind: 'words', candidates: commandCandidates(line.words, commands) });
  const spec = Object.values<PositionalSpec>(command.positionals)[line.words.length];
  return of(spec === undefined ? NOTHING : takesOf(spec, commands));
}

/** The line before the cursor. */
type Line = {
  readonly command: Command | undefined;
  /** Words that are neither options nor their values nor the command's name; those that name none, where it is not known. */
  readonly words: readonly string[];
  readonly options: OptionTable;
  /** The option whose value the cursor is at. */
  readonly awaited: OptionSpec | undefined;
  /** Behind `--`. */
  readonly isOnlyWords: boolean;
  readonly places: readonly string[];
};

function readWords(before: readonly string[], commands: readonly Command[]): Line {
  let command: Command | undefined;
  let options: OptionTable = GLOBAL_OPTIONS;
  let words: string[] = [];
  let awaited: { readonly name: string; readonly spec: OptionSpec } | undefined;
  let isOnlyWords = false;
  const places: string[] = [];
  for (const word of before) {
    if (awaited !== undefined) {
      if (PLACES.has(awaited.name)) places.push(`--${awaited.name}=${word}`);
      awaited = undefined;
    } else if (!isOnlyWords && word === '--') isOnlyWords = true;
    else if (!isOnlyWords && /^-./.test(word)) {
      const [typed = '', ...value] = word.split('=');
      const option = findOption(options, typed);
      if (option === undefined || option.spec.type === 'boolean') continue;
      if (value.length === 0) awaited = option;
      else if (PLACES.has(option.name)) places.push(`--${option.name}=${value.join('=')}`);
    } else {
      words.push(word);
      const named = command === undefined ? commands.find(({ name }) => name === words.join(' ')) : undefined;
      if (named === undefined) continue;
      command = named;
      options = { ...GLOBAL_OPTIONS, ...named.options };
      words = [];
    }
  }
  return { command, words, options, awaited: awaited?.spec, isOnlyWords, places };
}

/** Finds an option by the name that is typed, with its dashes. */
function findOption(
  table: OptionTable,
  typed: string,
): { readonly name: string; readonly spec: OptionSpec } | undefined {
  const found = Object.entries(table).find(([name, { alias }]) => typed === `--${name}` || typed === `-${alias}`);
  return found === undefined ? undefined : { name: found[0], spec: found[1] };
}

function optionCandidates(options: OptionTable): readonly Candidate[] {
  return Object.entries(options).map(([name, { type, summary }]) => ({
    word: type === 'boolean' ? `--${name}` : `--${name}=`,
    help: summary,
  }));
}

/** Lists the next words of the commands whose first words are there. */
function commandCandidates(words: readonly string[], commands: readonly Command[]): readonly Candidate[] {
  const nexts = new Map<string, string>();
  for (const { name, summary } of commands) {
    const parts = name.split(' ');
    const next = parts[words.length];
    if (next !== undefined && words.every((word, index) => word === parts[index])) nexts.set(next, summary);
  }
  return [...nexts].map(([word, help]) => ({ word, help }));
}

function takesOf(
  { choices, completes }: OptionSpec | PositionalSpec,
  commands: readonly Command[],
): Completion['takes'] {
  if (choices !== undefined) return { kind: 'words', candidates: choices.map((word) => ({ word })) };
  if (completes === undefined) return NOTHING;
  if (completes === 'command') return { kind: 'words', candidates: commandCandidates([], commands) };
  return completes === 'file' || completes === 'folder' ? { kind: completes } : { kind: 'names', of: completes };
}
