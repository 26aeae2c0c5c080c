/**
 * What may hold of settings, by the texts of their values: a time is its milliseconds, a list its items joined by commas. Regular
 * expressions are read alike by RE2 and JavaScript: without look-around.
 */
export type Condition =
  /** The text is one of these. */
  | { readonly flag: string; readonly is: readonly string[] }
  | { readonly flag: string; readonly isNot: readonly string[] }
  /** The text is not empty, and that of another setting too. */
  | { readonly flag: string; readonly isSameAs: string }
  /** An item of the list matches the first expression, and not the second. */
  | { readonly flag: string; readonly hasItem: string; readonly but?: string }
  /** No item of the list matches. */
  | { readonly flag: string; readonly hasNoItem: string }
  /** The list has more items. */
  | { readonly flag: string; readonly itemsAbove: number }
  /** The sum of numbers, or of times in milliseconds, is above that of another setting times `of[0] / of[1]`. */
  | { readonly sum: readonly string[]; readonly above: string; readonly of?: readonly [number, number] }
  /** A number is below this one. */
  | { readonly flag: string; readonly below: number };

/**
 * A combination of settings that a program refuses, although each of them is valid alone. The programs and the chart decide by
 * the same rules: `checkRules`, and the helper `tke-eni.broken-rules` of the chart.
 */
export type Rule = {
  /** The setting that is at fault. */
  readonly flag: string;
  /** It is refused where all of these hold. */
  readonly refusedWhen: readonly Condition[];
  /** What it has to be; `{limit}` is the limit of an `above`, `{flag}` the text of that setting. */
  readonly expected: string;
};

/** Refuses the setting `flag` where all conditions hold. */
export function refused(flag: string, expected: string, ...refusedWhen: readonly Condition[]): Rule {
  return { flag, refusedWhen, expected };
}

/** Holds where a setting is empty. */
export function isEmpty(flag: string): Condition {
  return { flag, is: [''] };
}

/** Holds where a setting is not empty. */
export function isSet(flag: string): Condition {
  return { flag, isNot: [''] };
}
