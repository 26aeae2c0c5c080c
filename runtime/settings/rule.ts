/** What may hold of settings, by the texts that they have; a list is joined by commas. */
export type Condition =
  /** The text is one of these. */
  | { readonly flag: string; readonly is: readonly string[] }
  | { readonly flag: string; readonly isNot: readonly string[] }
  /** The text matches a regular expression that RE2 and JavaScript read alike: without look-around. */
  | { readonly flag: string; readonly like: string }
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
