import { Parser } from 'yargs/helpers';
import type { Command, OptionTable } from '../command/command.ts';
import { GLOBAL_OPTIONS } from '../command/global-options.ts';
import { parseArguments, unknownCommand } from './parse-arguments.ts';

/** Result of parsing the command line. */
export type CommandLine =
  | {
      readonly kind: 'run';
      readonly command: Command;
      readonly args: Readonly<Record<string, unknown>>;
      readonly global: GlobalValues;
    }
  | { readonly kind: 'help'; readonly words: readonly string[]; readonly global: GlobalValues }
  | { readonly kind: 'version' }
  | { readonly kind: 'faulty'; readonly faults: readonly string[]; readonly next: string };

/** Values of the global options; undefined where an option is not given and has no fixed default. */
export type GlobalValues = {
  readonly socket: string;
  readonly stateDir: string;
  readonly agentTimeoutMs: number;
  readonly isAgentTimeoutGiven: boolean;
  readonly netns: string | undefined;
  readonly hostRoot: string | undefined;
  readonly kubeconfig: string | undefined;
  readonly color: 'auto' | 'always' | 'never';
};

/** Parses a command line, without the program's own name. Finds all faults at once; prints nothing. */
export function readCommandLine(argv: readonly string[], commands: readonly Command[]): CommandLine {
  const { command, rest, options } = splitCommandLine(argv, commands);
  if (options['version'] === true) return { kind: 'version' };
  if (options['help'] === true || (command === undefined && rest.length === 0 && Object.keys(options).length === 0)) {
    const words = command === undefined ? rest : command.name.split(' ');
    return { kind: 'help', words, global: globalValues(pickGlobal(options), options) };
  }
  const known: OptionTable = command === undefined ? GLOBAL_OPTIONS : { ...GLOBAL_OPTIONS, ...command.options };
  const outcome = parseArguments(
    command ?? { name: '', positionals: {} },
    known,
    command === undefined ? [] : rest,
    options,
  );
  const faults = [
    ...(command === undefined ? [missingCommand(rest, commands)] : []),
    ...(outcome.kind === 'faulty' ? outcome.faults : []),
    ...(command === undefined && misplaced(options, commands) ? ["a command's own options stand behind its name"] : []),
  ];
  if (outcome.kind === 'faulty' || command === undefined) {
    return {
      kind: 'faulty',
      faults,
      next: `see ${command === undefined ? 'tke-eni help' : `tke-eni ${command.name} --help`}`,
    };
  }
  const { values } = outcome;
  const args = Object.fromEntries(Object.entries(values).filter(([name]) => !(name in GLOBAL_OPTIONS)));
  return { kind: 'run', command, args, global: globalValues(values, options) };
}

/** Reports whether an option of some command is placed before any command. */
function misplaced(options: Readonly<Record<string, unknown>>, commands: readonly Command[]): boolean {
  return Object.keys(options).some(
    (name) =>
      !(name in GLOBAL_OPTIONS) &&
      commands.some((command) =>
        Object.entries(command.options).some(([own, { alias }]) => own === name || alias === name),
      ),
  );
}

function missingCommand(rest: readonly string[], commands: readonly Command[]): string {
  const [first, second] = rest;
  if (first === undefined) return 'a command is missing';
  const inGroup = commands.filter((command) => command.name.startsWith(`${first} `));
  if (inGroup.length === 0) return unknownCommand(first, [...new Set(commands.map((command) => command.name))]);
  const names = inGroup.map((command) => command.name);
  if (second === undefined) return `${first} needs another word: ${names.join(', ')}`;
  return unknownCommand(`${first} ${second}`, names);
}

/** Returns the global options that help needs. Faults in other options are ignored: the user gets the help. */
function pickGlobal(options: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const color = options['color'];
  return { color: color === 'always' || color === 'never' ? color : 'auto' };
}

/** @param given What the command line has, without defaults. */
function globalValues(
  values: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, unknown>>,
): GlobalValues {
  const text = (name: keyof typeof GLOBAL_OPTIONS) => {
    const value = values[name];
    return typeof value === 'string' ? value : undefined;
  };
  const number = (name: keyof typeof GLOBAL_OPTIONS) => {
    const value = values[name];
    return typeof value === 'number' ? value : undefined;
  };
  const color = text('color');
  return {
    socket: text('socket') ?? GLOBAL_OPTIONS.socket.default,
    stateDir: text('state-dir') ?? GLOBAL_OPTIONS['state-dir'].default,
    agentTimeoutMs: 1_000 * (number('agent-timeout') ?? GLOBAL_OPTIONS['agent-timeout'].default),
    isAgentTimeoutGiven: given['agent-timeout'] !== undefined,
    netns: text('netns'),
    hostRoot: text('host-root'),
    kubeconfig: text('kubeconfig'),
    color: color === 'always' || color === 'never' ? color : 'auto',
  };
}

/** The command line as yargs parsed it; only its form is checked. */
type SplitCommandLine = {
  /** The command that the first words name; undefined when they name no command. */
  readonly command: Command | undefined;
  /** Words that are neither options nor the command's name, in their order. */
  readonly rest: readonly string[];
  /**
   * Options by long name, or as typed where no command declares them. A switch is true or false. Other options are a
   * text, or, when given several times, a list of texts; '' where the value is missing.
   */
  readonly options: Readonly<Record<string, unknown>>;
};

/**
 * Finds command, options and other words: first the command's name, with the global options only, then everything with
 * the command's own options. Uses the parser of yargs alone: its commands and help would add 9 to 18 ms to every start (ADR 0120).
 */
function splitCommandLine(argv: readonly string[], commands: readonly Command[]): SplitCommandLine {
  // Most command lines begin with the command's name: one pass is enough.
  const named = commands.find((command) => command.name === argv[0]);
  if (named !== undefined) return parseAll(named, argv.slice(1));
  const head = parse(argv, GLOBAL_OPTIONS, UNTIL_WORD);
  const [first = '', ...behind] = head.rest;
  const before = argv.slice(0, argv.length - head.rest.length);
  const single = commands.find((command) => command.name === first);
  if (single !== undefined) return parseAll(single, [...before, ...behind]);
  if (!commands.some((command) => command.name.startsWith(`${first} `))) return { command: undefined, ...head };
  const middle = parse(behind, GLOBAL_OPTIONS, UNTIL_WORD);
  const [second = '', ...last] = middle.rest;
  const command = commands.find(({ name }) => name === `${first} ${second}`);
  if (command === undefined) {
    return { command, rest: [first, ...middle.rest], options: { ...head.options, ...middle.options } };
  }
  const between = behind.slice(0, behind.length - middle.rest.length);
  return parseAll(command, [...before, ...between, ...last]);
}

const UNTIL_WORD = { 'halt-at-non-option': true } as const;

function parseAll(command: Command, argv: readonly string[]): SplitCommandLine {
  return { command, ...parse(argv, { ...GLOBAL_OPTIONS, ...command.options }) };
}

function parse(
  argv: readonly string[],
  table: OptionTable,
  more: Readonly<Record<string, boolean>> = {},
): Pick<SplitCommandLine, 'rest' | 'options'> {
  const specs = Object.entries(table);
  const { _: rest, ...options } = Parser([...expandShortOptions(argv, table)], {
    boolean: specs.filter(([, spec]) => spec.type === 'boolean').map(([name]) => name),
    // Numbers stay texts, so that a fault can quote the input.
    string: specs.filter(([, spec]) => spec.type !== 'boolean').map(([name]) => name),
    alias: Object.fromEntries(specs.flatMap(([name, { alias }]) => (alias === undefined ? [] : [[name, [alias]]]))),
    configuration: { ...PARSER, ...more },
  });
  return { rest: rest.map(String), options };
}

/** Configuration of the parser. @see https://github.com/yargs/yargs-parser#configuration */
const PARSER = {
  'camel-case-expansion': false,
  'dot-notation': false,
  'parse-numbers': false,
  'parse-positional-numbers': false,
  'strip-aliased': true,
  // The last value of a single option counts; lists need all values. So the parser keeps all, and the last is selected
  // later.
  'duplicate-arguments-array': true,
} as const;

/** Turns `-ojson` into `-o=json`, a form that users know from kubectl; yargs would parse it as five switches. */
function expandShortOptions(argv: readonly string[], table: OptionTable): readonly string[] {
  const takesValue = new Set(Object.values(table).flatMap((spec) => (spec.type === 'boolean' ? [] : [spec.alias])));
  const end = argv.indexOf('--');
  return argv.map((arg, index) =>
    (end < 0 || index < end) && CLUSTER.test(arg) && takesValue.has(arg[1])
      ? `${arg.slice(0, 2)}=${arg.slice(2)}`
      : arg,
  );
}

/** Matches a letter that is directly followed by a value without '='. */
const CLUSTER = /^-[A-Za-z][^=]/;
