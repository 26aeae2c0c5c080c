import type { Command, OptionSpec, OptionTable, PositionalSpec } from '../command.ts';
import { GLOBAL_OPTIONS } from '../program/global-options.ts';

/** What a shell has to know to complete a command line: the declarations, without what only help needs. */
export type Grammar = {
  readonly globals: readonly OptionGrammar[];
  readonly commands: readonly CommandGrammar[];
};

/** One command as a shell sees it. */
export type CommandGrammar = {
  /** One word, or two. */
  readonly name: string;
  readonly summary: string;
  readonly options: readonly OptionGrammar[];
  /** In their order. */
  readonly positionals: readonly { readonly name: string; readonly takes: Takes }[];
};

/** One option as a shell sees it. */
export type OptionGrammar = {
  /** As typed: '--output', and '-o' if it has a letter. */
  readonly long: string;
  readonly short: string | undefined;
  readonly summary: string;
  /** Undefined for a switch. */
  readonly takes: Takes | undefined;
};

/** What a value is completed with: fixed words, files, what `__complete` prints of a kind, or nothing. */
export type Takes =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'file' | 'folder' | 'any' }
  | { readonly kind: 'dynamic'; readonly what: string };

/** Finds the grammar of the command line. Pure. */
export function findGrammar(commands: readonly Command[]): Grammar {
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

function takesOf(spec: OptionSpec | PositionalSpec, commands: readonly Command[]): Takes {
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
