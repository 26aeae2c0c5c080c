import { Parser } from 'yargs/helpers';
import type { Command, OptionTable } from '../command.ts';
import { GLOBAL_OPTIONS } from './global-options.ts';

/** What yargs made of the command line; nothing is checked yet but the shape. */
export type Words = {
  /** The command that the first words name; undefined when they name none. */
  readonly command: Command | undefined;
  /** Words that are neither options nor the command's name, in their order. */
  readonly rest: readonly string[];
  /**
   * By long name, or as typed where nobody declares it. A switch is true or false; anything else is a text or, given
   * several times, a list of texts, '' where the value is missing.
   */
  readonly options: Readonly<Record<string, unknown>>;
};

/**
 * Finds command, options and other words: first the command's name, with only the global options known, then everything
 * with its own options too. yargs' parser alone does it; its commands and help would cost 15 ms at every start. Pure.
 */
export function splitWords(argv: readonly string[], commands: readonly Command[]): Words {
  // Most lines begin with it: one pass is enough.
  const named = commands.find((command) => command.name === argv[0]);
  if (named !== undefined) return parseAll(named, argv.slice(1));
  const head = parse(argv, GLOBAL_OPTIONS, UNTIL_WORD);
  const [first = '', ...behind] = head.rest;
  const before = argv.slice(0, argv.length - head.rest.length);
  const whole = commands.find((command) => command.name === first);
  if (whole !== undefined) return parseAll(whole, [...before, ...behind]);
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

function parseAll(command: Command, words: readonly string[]): Words {
  return { command, ...parse(words, { ...GLOBAL_OPTIONS, ...command.options }) };
}

function parse(
  words: readonly string[],
  table: OptionTable,
  more: Readonly<Record<string, boolean>> = {},
): Pick<Words, 'rest' | 'options'> {
  const specs = Object.entries(table);
  const { _: rest, ...options } = Parser([...spellOut(words, table)], {
    boolean: specs.filter(([, spec]) => spec.type === 'boolean').map(([name]) => name),
    // Numbers too, so that a fault can quote what was typed.
    string: specs.filter(([, spec]) => spec.type !== 'boolean').map(([name]) => name),
    alias: Object.fromEntries(specs.flatMap(([name, { alias }]) => (alias === undefined ? [] : [[name, [alias]]]))),
    configuration: { ...PARSER, ...more },
  });
  return { rest: rest.map(String), options };
}

/** @see https://github.com/yargs/yargs-parser#configuration */
const PARSER = {
  'camel-case-expansion': false,
  'dot-notation': false,
  'parse-numbers': false,
  'parse-positional-numbers': false,
  'strip-aliased': true,
  // The last of a scalar wins; lists need the first ones too, so all are kept and the last is taken later.
  'duplicate-arguments-array': true,
} as const;

/** Turns `-ojson` into `-o=json`, as people know it from kubectl; yargs would read it as five switches. */
function spellOut(words: readonly string[], table: OptionTable): readonly string[] {
  const takesValue = new Set(Object.values(table).flatMap((spec) => (spec.type === 'boolean' ? [] : [spec.alias])));
  const end = words.indexOf('--');
  return words.map((word, index) =>
    (end < 0 || index < end) && CLUSTER.test(word) && takesValue.has(word[1])
      ? `${word.slice(0, 2)}=${word.slice(2)}`
      : word,
  );
}

/** A letter with something at once behind it that is no '='. */
const CLUSTER = /^-[A-Za-z][^=]/;
