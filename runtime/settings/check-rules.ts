import type { Faults } from '../decode.ts';
import type { OptionTable } from './option.ts';
import type { Condition, Rule } from './rule.ts';

/** Adds a fault for each rule that is broken. `settings` are those of `options`, by the same keys; each is valid. */
export function checkRules(
  rules: readonly Rule[],
  options: OptionTable,
  settings: Readonly<Record<string, unknown>>,
  faults: Faults,
): void {
  const values = new Map(
    Object.entries(options).map(([key, { flag, value }]) => {
      const setting = settings[key];
      return [flag, value.items?.(setting).join(',') ?? setting];
    }),
  );
  const textOf: TextOf = (flag) => String(values.get(flag));
  for (const { flag, refusedWhen, expected } of rules) {
    if (!refusedWhen.every((condition) => holds(condition, textOf))) continue;
    const [limit] = refusedWhen.flatMap((condition) => ('above' in condition ? [limitOf(condition, textOf)] : []));
    const text = expected.replaceAll(/\{([a-z-]+)\}/g, (_, name: string) =>
      name === 'limit' ? `${limit}` : textOf(name),
    );
    const [got = textOf(flag) === '' ? undefined : values.get(flag)] = refusedWhen.flatMap(
      (condition) => partOf(condition, flag, textOf) ?? [],
    );
    faults.add(`--${flag}`, text, got);
  }
}

/** The text of a value, as a {@link Condition} reads it. */
type TextOf = (flag: string) => string;

function holds(condition: Condition, textOf: TextOf): boolean {
  if ('sum' in condition) return sumOf(condition.sum, textOf) > limitOf(condition, textOf);
  const text = textOf(condition.flag);
  if ('is' in condition) return condition.is.includes(text);
  if ('isNot' in condition) return !condition.isNot.includes(text);
  if ('isSameAs' in condition) return text !== '' && text === textOf(condition.isSameAs);
  if ('hasItem' in condition) return matchesOf(condition, textOf).length > 0;
  if ('hasNoItem' in condition) return !itemsOf(text).some((item) => new RegExp(condition.hasNoItem).test(item));
  if ('itemsAbove' in condition) return itemsOf(text).length > condition.itemsAbove;
  return Number(text) < condition.below;
}

function sumOf(flags: readonly string[], textOf: TextOf): number {
  return flags.reduce((sum, flag) => sum + Number(textOf(flag)), 0);
}

type Above = Extract<Condition, { readonly above: string }>;

function limitOf({ above, of = [1, 1] }: Above, textOf: TextOf): number {
  return (Number(textOf(above)) * of[0]) / of[1];
}

function itemsOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(',');
}

type HasItem = Extract<Condition, { readonly hasItem: string }>;

function matchesOf({ flag, hasItem, but }: HasItem, textOf: TextOf): readonly string[] {
  const items = itemsOf(textOf(flag)).filter((item) => new RegExp(hasItem).test(item));
  return but === undefined ? items : items.filter((item) => !new RegExp(but).test(item));
}

/** What of the value of `flag` the condition is about: a sum, a number of items, some of its items; undefined for the whole. */
function partOf(condition: Condition, flag: string, textOf: TextOf): number | string | undefined {
  if ('sum' in condition) return condition.sum.includes(flag) ? sumOf(condition.sum, textOf) : undefined;
  if (condition.flag !== flag) return undefined;
  if ('hasItem' in condition) return matchesOf(condition, textOf).join(',');
  return 'itemsAbove' in condition ? itemsOf(textOf(flag)).length : undefined;
}
