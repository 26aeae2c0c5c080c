import yargs from 'yargs';
import type { Command, OptionSpec, OptionTable } from '../command.ts';
import { GLOBAL_OPTIONS } from './global-options.ts';

/** What yargs made of the command line; nothing is checked yet but the shape. */
export type Words = {
  /** The command that the first words name; undefined when they name none. */
  readonly command: Command | undefined;
  /** Words that are neither options nor the command's name, in their order. */
  readonly rest: readonly string[];
  /** By long name, or as typed where nobody declares it; a string option without a value is ''. */
  readonly options: Readonly<Record<string, unknown>>;
};

/**
 * Finds command, options and other words. Only the options of the command that was typed are declared to the parser.
 * Reads nothing of the process and prints nothing: faults, help and version are decided by who calls.
 */
export function splitWords(argv: readonly string[], commands: readonly Command[]): Words {
  let found: Command | undefined;
  const groups = groupByFirstWord(commands);
  const parser = yargs()
    .help(false)
    .version(false)
    .exitProcess(false)
    .fail(false)
    .parserConfiguration(PARSER)
    .options(yargsOptions(GLOBAL_OPTIONS));
  for (const [first, members] of groups) {
    parser.command(
      first,
      false,
      (inner) => {
        for (const command of members) {
          const second = command.name.split(' ')[1];
          const choose = () => {
            found = command;
          };
          if (second === undefined) inner.options(yargsOptions(command.options));
          else inner.command(second, false, (innermost) => innermost.options(yargsOptions(command.options)), choose);
        }
        return inner;
      },
      () => {
        found = members.find((command) => command.name === first);
      },
    );
  }
  const { _: words, $0: _program, ...options } = parser.parseSync(spellOut(argv, commands));
  const named = found === undefined ? 0 : found.name.split(' ').length;
  return { command: found, rest: words.slice(named).map(String), options };
}

/** @see https://github.com/yargs/yargs-parser#configuration */
const PARSER = {
  'camel-case-expansion': false,
  'dot-notation': false,
  'parse-numbers': false,
  'parse-positional-numbers': false,
  'greedy-arrays': false,
  'strip-aliased': true,
  // The last of a scalar wins; arrays need the first ones too, so all are kept and the last is taken later.
  'duplicate-arguments-array': true,
} as const;

function yargsOptions(options: OptionTable) {
  return Object.fromEntries(
    Object.entries(options).map(([name, spec]) => [
      name,
      // Numbers come as text, so that a fault can quote what was typed.
      { type: isSwitch(spec) ? ('boolean' as const) : ('string' as const), ...(spec.alias && { alias: spec.alias }) },
    ]),
  );
}

function isSwitch(spec: OptionSpec): boolean {
  return spec.type === 'boolean';
}

function groupByFirstWord(commands: readonly Command[]): ReadonlyMap<string, readonly Command[]> {
  const groups = new Map<string, Command[]>();
  for (const command of commands) {
    const first = command.name.split(' ')[0] ?? '';
    const members = groups.get(first);
    if (members === undefined) groups.set(first, [command]);
    else members.push(command);
  }
  return groups;
}

/** Turns `-ojson` into `-o=json`, as people know it from kubectl; yargs would read it as five switches. */
function spellOut(argv: readonly string[], commands: readonly Command[]): readonly string[] {
  if (!argv.some((word) => CLUSTER.test(word))) return argv;
  const tables = [GLOBAL_OPTIONS, ...commands.map((command) => command.options)] as readonly OptionTable[];
  const specs = tables.flatMap((table) => Object.values(table));
  const takesValue = new Set(specs.filter((spec) => spec.alias && !isSwitch(spec)).map((spec) => spec.alias));
  const end = argv.indexOf('--');
  return argv.map((word, index) =>
    (end < 0 || index < end) && CLUSTER.test(word) && takesValue.has(word[1])
      ? `${word.slice(0, 2)}=${word.slice(2)}`
      : word,
  );
}

/** A letter with something at once behind it that is no '='. */
const CLUSTER = /^-[A-Za-z][^=]/;
