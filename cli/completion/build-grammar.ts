import type { Command, OptionSpec, OptionTable, PositionalSpec } from '../command.ts';
import { GLOBAL_OPTIONS } from '../program/global-options.ts';

/** Grammar of the command line for shell completion: the declarations without the texts that only help needs. */
export type Grammar = {
  readonly globals: readonly OptionGrammar[];
  readonly commands: readonly CommandGrammar[];
};

/** One command in the grammar. */
export type CommandGrammar = {
  /** One word, or two. */
  readonly name: string;
  readonly summary: string;
  readonly options: readonly OptionGrammar[];
  /** Positional arguments in their order. */
  readonly positionals: readonly { readonly name: string; readonly takes: ValueSpec }[];
};

/** One option in the grammar. */
export type OptionGrammar = {
  /** The names as typed: '--output', and '-o' where the option has a letter. */
  readonly long: string;
  readonly short: string | undefined;
  readonly summary: string;
  /** Completion of the option's value; undefined for a switch. */
  readonly takes: ValueSpec | undefined;
};

/** How a value is completed: by fixed words, by files, by words that `__complete` prints for a kind, or not at all. */
export type ValueSpec =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'file' | 'folder' | 'any' }
  | { readonly kind: 'dynamic'; readonly what: string };

/** Builds the grammar of the command line. */
export function buildGrammar(commands: readonly Command[]): Grammar {
  return {
    globals: optionsOf(GLOBAL_OPTIONS),
    commands: commands.map(({ name, summary, options, positionals }) => ({
      name,
      summary,
      options: optionsOf(options),
      positionals: Object.entries<PositionalSpec>(positionals).map(([word, spec]) => ({
        name: word,
        takes: takesOf(spec, commands),
      })),
    })),
  };
}

function optionsOf(table: OptionTable): readonly OptionGrammar[] {
  return Object.entries(table).map(([name, spec]) => ({
    long: `--${name}`,
    short: spec.alias === undefined ? undefined : `-${spec.alias}`,
    summary: spec.summary,
    takes: spec.type === 'boolean' ? undefined : takesOf(spec, []),
  }));
}

function takesOf(spec: OptionSpec | PositionalSpec, commands: readonly Command[]): ValueSpec {
  if (spec.choices !== undefined) return { kind: 'words', words: spec.choices };
  switch (spec.completes) {
    case undefined:
      return { kind: 'any' };
    case 'file':
    case 'folder':
      return { kind: spec.completes };
    case 'command':
      return { kind: 'words', words: [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? name))] };
    default:
      return { kind: 'dynamic', what: spec.completes };
  }
}
