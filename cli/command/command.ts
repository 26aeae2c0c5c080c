import type { NodePlace } from '../../inspection/node/with-node-netns.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { ExitCode } from './exit-code.ts';

/**
 * Declaration of one command. Help, completion, man page and docs are generated from it. It imports no code of the
 * command, so it is cheap to load; `load` imports that code, and only for the command that runs.
 */
export type Command<O extends OptionTable = OptionTable, P extends PositionalTable = PositionalTable> = {
  /** The words a user types; two words for a subcommand ('completion bash'). */
  readonly name: string;
  /** One line, starts with a verb, no full stop. */
  readonly summary: string;
  /** Paragraphs for the man page. */
  readonly description: string;
  readonly positionals: P;
  readonly options: O;
  readonly examples: readonly { readonly line: string; readonly does: string }[];
  /** Meaning of exit code 1 for this command; absent where the command never exits with it. */
  readonly wrongMeans?: string;
  /** Which part of the command needs root or a capability. Used in the docs and in the error message without root. */
  readonly needs?: string;
  readonly load: () => Promise<CommandBody<O, P>>;
};

/** Code of a command. */
export type CommandBody<O extends OptionTable = OptionTable, P extends PositionalTable = PositionalTable> = {
  /** Runs the command and returns its exit code. Rejects with UserError; text that was printed before stays printed. */
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
  /** Choices of an earlier release, each with what to take instead: the refusal says it. */
  readonly formerChoices?: Readonly<Record<string, string>>;
  readonly default?: string | number | boolean;
  /** Kind of values that a shell completes after this option. */
  readonly completes?: Completes;
};

/** Positional arguments in their order, by name. */
type PositionalTable = Readonly<Record<string, PositionalSpec>>;

/** One positional argument; only the last ones may be optional. */
export type PositionalSpec = {
  readonly summary: string;
  readonly isOptional?: true;
  readonly completes?: Completes;
  readonly choices?: readonly string[];
};

/** Kind of words that a shell offers as completion. */
type Completes = 'file' | 'folder' | 'pod' | 'eni' | 'table' | 'netns' | 'command';

type OptionValue<S extends OptionSpec> = S extends { readonly type: 'strings' }
  ? readonly string[]
  : S extends { readonly choices: readonly (infer C)[] }
    ? C
    : S extends { readonly type: 'number' }
      ? number
      : S extends { readonly type: 'boolean' }
        ? boolean
        : string;

/**
 * Type of an option in the parsed arguments. Switches and lists are always present, others where they have a default.
 */
type OptionArg<S extends OptionSpec> = S extends
  | { readonly default: string | number | boolean }
  | { readonly type: 'boolean' | 'strings' }
  ? OptionValue<S>
  : OptionValue<S> | undefined;

/** Arguments that a command receives: options and positionals under their declared names. */
export type ArgsOf<O extends OptionTable, P extends PositionalTable> = {
  readonly [K in keyof O]: OptionArg<O[K]>;
} & { readonly [K in keyof P]: P[K] extends { readonly isOptional: true } ? string | undefined : string };

/** The process that runs a command: streams, environment, clock, signals. Tests pass their own. */
export type CommandContext = {
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Aborts on SIGINT and SIGTERM. A command that follows events then ends with exit code 0. */
  readonly signal: AbortSignal;
  /**
   * Calls the listener for each key typed, until the returned function is called. Undefined where stdin is no terminal.
   */
  readonly keys?: (listener: (key: string) => void) => () => void;
  readonly isRoot: boolean;
  readonly global: GlobalArgs;
};

/** Output stream of a command. */
export type Stream = {
  readonly isTerminal: boolean;
  /** Width for the layout: the terminal's, or COLUMNS, or 160 where neither is known. */
  columns(): number;
  rows(): number;
  /** True to print colours: on a terminal without NO_COLOR and TERM=dumb, or with `--color=always`. */
  readonly isColored: boolean;
  write(text: string): void;
  /** Writes bytes unchanged: what is not text must not be written to a terminal. */
  writeBytes(bytes: Uint8Array): void;
};

/** Values of the options that every command accepts. */
export type GlobalArgs = NodePlace & {
  /** Agent's socket. */
  readonly socket: string;
  /** Longest wait for the agent's answer where the journal has one too. */
  readonly agentTimeoutMs: number;
  /** Whether the user said how long; absent: no. */
  readonly isAgentTimeoutGiven?: boolean;
  readonly kubeconfig: string;
};

/** Returns the declaration unchanged and infers its literal types: `export const ROUTES = defineCommand({…})`. */
export function defineCommand<const O extends OptionTable, const P extends PositionalTable>(
  command: Command<O, P>,
): Command<O, P> {
  return command;
}

/** The options or positional arguments of a command that has none. */
export const NO_ARGUMENTS = {} as const;
