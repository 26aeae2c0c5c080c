import type { Clock } from '../runtime/clock.ts';
import type { ExitCode } from './exit-code.ts';

/**
 * Declares one command: what help, completion, man page and docs are made of, and where its code is. Declarations are
 * cheap to load; `load` imports the rest, and only for the command that runs.
 */
export type Command<O extends OptionTable = OptionTable, P extends PositionalTable = PositionalTable> = {
  /** As typed; two words for a subcommand ('completion bash'). */
  readonly name: string;
  /** One line, starts with a verb, no full stop. */
  readonly summary: string;
  /** Paragraphs for the man page. */
  readonly description: string;
  readonly positionals: P;
  readonly options: O;
  readonly examples: readonly { readonly line: string; readonly does: string }[];
  /** What exit code 1 means here; absent when it is never given. */
  readonly wrongMeans?: string;
  /** What of it needs root (or which capability), for the docs and for the message to those who lack it. */
  readonly needs?: string;
  readonly load: () => Promise<CommandBody<O, P>>;
};

/** What a command does. */
export type CommandBody<O extends OptionTable = OptionTable, P extends PositionalTable = PositionalTable> = {
  /** Rejects with CliError; what was printed before that stays printed. */
  run(args: ArgsOf<O, P>, context: CommandContext): Promise<ExitCode>;
};

/** Options by their long name, kebab-case, without the dashes. */
export type OptionTable = Readonly<Record<string, OptionSpec>>;

/** One option. A `default` makes the argument always present. */
export type OptionSpec = {
  readonly type: 'string' | 'number' | 'boolean' | 'strings';
  /** One line, no full stop. */
  readonly summary: string;
  /** For help: ADDR, SECONDS, FILE. */
  readonly metavar?: string;
  /** One letter. */
  readonly alias?: string;
  readonly choices?: readonly string[];
  readonly default?: string | number | boolean;
  /** What a shell offers after it. */
  readonly completes?: Completes;
};

/** Positional arguments in their order, by name. */
export type PositionalTable = Readonly<Record<string, PositionalSpec>>;

/** One positional argument; only the last ones may be optional. */
export type PositionalSpec = {
  readonly summary: string;
  readonly isOptional?: true;
  readonly completes?: Completes;
  readonly choices?: readonly string[];
};

/** What a shell completes a word with. */
export type Completes = 'file' | 'folder' | 'pod' | 'eni' | 'table' | 'netns' | 'command';

type OptionValue<S extends OptionSpec> = S extends { readonly type: 'strings' }
  ? readonly string[]
  : S extends { readonly choices: readonly (infer C)[] }
    ? C
    : S extends { readonly type: 'number' }
      ? number
      : S extends { readonly type: 'boolean' }
        ? boolean
        : string;

/** Switches and lists are always there, others where they have a default. */
type OptionArg<S extends OptionSpec> = S extends
  | { readonly default: string | number | boolean }
  | { readonly type: 'boolean' | 'strings' }
  ? OptionValue<S>
  : OptionValue<S> | undefined;

/** What a command gets: options and positionals under their names as declared. */
export type ArgsOf<O extends OptionTable, P extends PositionalTable> = {
  readonly [K in keyof O]: OptionArg<O[K]>;
} & { readonly [K in keyof P]: P[K] extends { readonly isOptional: true } ? string | undefined : string };

/** The process around a command, as a port: tests give their own. */
export type CommandContext = {
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Aborts on SIGINT and SIGTERM; a command that follows something ends then, with exit code 0. */
  readonly signal: AbortSignal;
  /** Keys typed, raw, while somebody listens; undefined when standard input is no terminal. */
  readonly keys?: (listener: (key: string) => void) => () => void;
  readonly isRoot: boolean;
  readonly global: GlobalArgs;
};

/** Where text goes. */
export type Stream = {
  readonly isTerminal: boolean;
  /** Width to lay out for: the terminal's, or COLUMNS, or 160 when nobody says. */
  columns(): number;
  rows(): number;
  /** True when escape sequences for colour are wanted: a terminal, no NO_COLOR, not TERM=dumb; or `--color=always`. */
  readonly isColored: boolean;
  write(text: string): void;
};

/** Options that every command takes. */
export type GlobalArgs = {
  /** Agent's socket. */
  readonly socket: string;
  /** Agent's state folder: journal and node file. */
  readonly stateDir: string;
  /** Namespace that stands for the node's: name in /run/netns or path; undefined: the process's own. */
  readonly netns: string | undefined;
  /** Root of the host's file system; '/' on the host, /proc/1/root inside the agent's container. */
  readonly hostRoot: string;
  readonly kubeconfig: string;
};

/** Keeps the types of a declaration: `export const ROUTES = defineCommand({…})`. */
export function defineCommand<const O extends OptionTable, const P extends PositionalTable>(
  command: Command<O, P>,
): Command<O, P> {
  return command;
}
