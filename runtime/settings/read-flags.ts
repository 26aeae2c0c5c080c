import type { Faults } from '../decode.ts';
import type { OptionTable } from './option.ts';
import { META_FLAGS } from './render-options.ts';

/** The text of each given flag; of a list, all values with commas between. */
export type FlagTexts = ReadonlyMap<string, string>;

/** The values that a switch takes. Any other following argument does not belong to the switch. */
const SWITCH_TEXTS: ReadonlySet<string> = new Set(['true', 'false']);

type KnownFlag = { readonly isSwitch: boolean; readonly isList: boolean };

/** Reads `--name value`, `--name=value`, `--switch` and `--switch false`; everything else becomes a fault. */
export function readFlags(argv: readonly string[], options: OptionTable, faults: Faults): FlagTexts {
  const known = knownFlags(options);
  const texts = new Map<string, string>();
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i] ?? '';
    const [, name, attached] = /^--([^=]+)(?:=(.*))?$/s.exec(argument) ?? [];
    const flag = name === undefined ? undefined : known.get(name);
    if (name === undefined || flag === undefined) {
      faults.add(
        argument,
        name === undefined ? 'a flag; there are no other arguments' : suggestion(name, known),
        argument,
      );
      // The argument after an unknown flag is most likely its value, so it is not reported as a second fault.
      if (name !== undefined && attached === undefined && argv[i + 1]?.startsWith('--') === false) i++;
      continue;
    }
    let text = attached;
    if (text === undefined && flag.isSwitch) text = SWITCH_TEXTS.has(argv[i + 1] ?? '') ? argv[++i] : 'true';
    // A following flag is not taken as the value: a missing value is reported instead of losing that flag.
    else if (text === undefined && argv[i + 1]?.startsWith('--') === false) text = argv[++i];
    const before = texts.get(name);
    if (text === undefined) faults.add(`--${name}`, 'a value', undefined);
    else if (before === undefined) texts.set(name, text);
    else if (flag.isList) texts.set(name, `${before},${text}`);
    else faults.add(`--${name}`, 'one value', [before, text]);
  }
  return texts;
}

function knownFlags(options: OptionTable): ReadonlyMap<string, KnownFlag> {
  const settings = Object.values(options).map(({ flag, value }): [string, KnownFlag] => [
    flag,
    { isSwitch: value.metavar === '', isList: value.isList === true },
  ]);
  const meta = META_FLAGS.map(({ flag, metavar }): [string, KnownFlag] => [
    flag,
    { isSwitch: metavar === '', isList: false },
  ]);
  return new Map([...settings, ...meta]);
}

/** Most differing letters between a misspelt flag and a suggestion. */
const TYPO_LETTERS = 3;

function suggestion(name: string, known: ReadonlyMap<string, KnownFlag>): string {
  const nearest = [...known.keys()]
    .map((flag) => ({ flag, distance: editDistance(name, flag) }))
    .sort((a, b) => a.distance - b.distance)[0];
  const isNear = nearest !== undefined && nearest.distance <= TYPO_LETTERS;
  return isNear ? `a flag that exists, such as --${nearest.flag}` : 'a flag that exists; --help lists them';
}

/** Counts the letters to insert, delete or replace (Levenshtein distance). */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(replace, (previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
