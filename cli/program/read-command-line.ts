import type { Command, OptionTable } from '../command/command.ts';
import { GLOBAL_OPTIONS } from '../command/global-options.ts';
import { parseArguments, unknownCommand } from './parse-arguments.ts';
import { splitCommandLine } from './split-command-line.ts';

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
