import type { OptionValue } from './option-value.ts';
import type { Rule } from './rule.ts';

/**
 * One setting of an executable, and the only place that names it. Flags, variables, file keys, help and docs are made
 * from it.
 */
export type Option<T> = {
  /** The flag without dashes; also the key in the file. The variable is `TKE_ENI_` + this in capitals. */
  readonly flag: string;
  /** The heading under which help and docs show it. */
  readonly section: string;
  readonly value: OptionValue<T>;
  /** The default as text; '' stands for none. A text that `value` does not accept makes the setting required. */
  readonly defaultText: string;
  /** One or two sentences: what the setting does, and when to change it. */
  readonly help: string;
};

/** All settings of one executable, in the order of the help text. Keys are the fields of its settings. */
export type OptionTable = Readonly<Record<string, Option<unknown>>>;

/** The settings that a table describes. */
export type SettingsOf<T extends OptionTable> = { readonly [K in keyof T]: ValueOf<T[K]> };

type ValueOf<O> = O extends Option<infer T> ? T : never;

/** An executable and its settings. */
export type SettingsProgram<T extends OptionTable = OptionTable> = {
  /** The executable's name. */
  readonly name: string;
  readonly options: T;
  /** Combinations of settings that it refuses, each of which is valid alone. */
  readonly rules?: readonly Rule[];
  /** The file that contains `options`; the generated page names it, as changes are made there. */
  readonly source: string;
  /** A flag of the table and a value for it, for the introduction of the page. */
  readonly example: { readonly flag: string; readonly text: string };
};

/** Makes one row of a table. */
export function option<T>(
  section: string,
  flag: string,
  value: OptionValue<T>,
  defaultText: string,
  help: string,
): Option<T> {
  return { section, flag, value, defaultText, help };
}

/** Reports whether the setting has no default, so that the user has to set it. */
export function isRequired({ value, defaultText }: Option<unknown>): boolean {
  return value.parse(defaultText) === undefined;
}
