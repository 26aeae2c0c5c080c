import type { Faults } from '../decode.ts';
import type { OptionTable } from './option.ts';
import type { Condition, Rule } from './rule.ts';
import { UNIT_MS } from './value-form.ts';

/** Adds a fault for each rule that is broken. `texts` are those of all settings, by flag; each is valid. */
export function checkRules(
  rules: readonly Rule[],
  texts: ReadonlyMap<string, string>,
  options: OptionTable,
  faults: Faults,
): void {
  const textOf = (flag: string): string => texts.get(flag) ?? '';
  for (const { flag, refusedWhen, expected } of rules) {
    if (!refusedWhen.every((condition) => holds(condition, textOf))) continue;
    const [limit] = refusedWhen.flatMap((condition) => ('above' in condition ? [limitOf(condition, textOf)] : []));
    const text = expected.replaceAll(/\{([a-z-]+)\}/g, (_, name: string) =>
      name === 'limit' ? `${limit}` : textOf(name),
    );
    faults.add(`--${flag}`, text, gotOf(flag, refusedWhen, textOf, options));
  }
}

/** A number as it is, a time in milliseconds. */
function numberOf(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  const parts = text.matchAll(/(\d+)(ms|s|m|h)/g);
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_MS[unit ?? ''] ?? Number.NaN), 0);
}

function holds(condition: Condition, textOf: (flag: string) => string): boolean {
  if ('sum' in condition) return sumOf(condition.sum, textOf) > limitOf(condition, textOf);
  const text = textOf(condition.flag);
  if ('is' in condition) return condition.is.includes(text);
  if ('isNot' in condition) return !condition.isNot.includes(text);
  if ('like' in condition) return new RegExp(condition.like).test(text);
  return numberOf(text) < condition.below;
}

function sumOf(flags: readonly string[], textOf: (flag: string) => string): number {
  return flags.reduce((sum, flag) => sum + numberOf(textOf(flag)), 0);
}

type Above = Extract<Condition, { readonly above: string }>;

function limitOf({ above, of = [1, 1] }: Above, textOf: (flag: string) => string): number {
  return (numberOf(textOf(above)) * of[0]) / of[1];
}

/** What the message says that there is: a sum, a number, a switch, or the text; undefined for none. */
function gotOf(
  flag: string,
  conditions: readonly Condition[],
  textOf: (flag: string) => string,
  options: OptionTable,
): unknown {
  const [sum] = conditions.flatMap((condition) => ('sum' in condition ? [condition.sum] : []));
  if (sum?.includes(flag) === true) return sumOf(sum, textOf);
  const text = textOf(flag);
  const value = Object.values(options).find((option) => option.flag === flag)?.value;
  if (value?.form.kind === 'switch' || value?.form.kind === 'number') return value.parse(text);
  return text === '' ? undefined : text;
}
