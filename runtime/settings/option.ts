import type { OptionValue } from './option-value.ts';

/** One setting of an executable: the only place that names it. Flags, variables, file keys, help and docs are made of this. */
export type Option<T> = {
  /** Without dashes; the file's key too. The variable is `TKE_ENI_` + this in capitals. */
  readonly flag: string;
  /** The heading under which help and docs show it. */
  readonly section: string;
  readonly value: OptionValue<T>;
  /** As it would be written; '' stands for none. One that `value` does not take makes the setting required. */
  readonly defaultText: string;
  /** One sentence or two: what it does, and when to change it. */
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
  /** Where `options` is written, for whoever wants to change the generated page. */
  readonly source: string;
  /** A flag of the table and a value for it, for the page's introduction. */
  readonly example: { readonly flag: string; readonly text: string };
};

/** Makes one row of a table. Pure. */
export function option<T>(
  section: string,
  flag: string,
  value: OptionValue<T>,
  defaultText: string,
  help: string,
): Option<T> {
  return { section, flag, value, defaultText, help };
}

/** Tells whether somebody has to give the setting. Pure. */
export function isRequired({ value, defaultText }: Option<unknown>): boolean {
  return value.parse(defaultText) === undefined;
}
