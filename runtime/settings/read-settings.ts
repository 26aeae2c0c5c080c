import { ConfigError, type Decoder, Faults, isRecord } from '../decode.ts';
import { FileError } from '../read-regular-file.ts';
import { checkRules } from './check-rules.ts';
import type { Option, OptionTable, SettingsOf, SettingsProgram } from './option.ts';
import { type FlagTexts, readFlags } from './read-flags.ts';
import { decodeYaml } from './read-yaml.ts';
import { renderHelp, variableOf } from './render-options.ts';

/** Exit status of a process whose settings are wrong. @see sysexits.h EX_CONFIG */
export const EX_CONFIG = 78;

/** The sources of settings; the caller reads the process and the disk. */
export type SettingsInput = {
  /** The arguments without the interpreter and the script. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Returns the text of a file. @throws its own error when it cannot. */
  readonly readFile: (path: string) => string;
};

/** What the caller asked for. */
export type SettingsOutcome<S> =
  | { readonly kind: 'run'; readonly config: S }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'version' };

/** Adds faults of settings that are valid alone but not in combination, beyond the rules of the program. Called only when each setting is valid. */
type TogetherCheck<S> = (settings: S, faults: Faults) => void;

/**
 * Reads the settings. Flags take precedence over variables, variables over the file, the file over defaults. The only
 * effect is `readFile`.
 * @throws ConfigError with every fault of all three sources; exit with `EX_CONFIG` then.
 */
export function readSettings<T extends OptionTable>(
  program: SettingsProgram<T>,
  { argv, env, readFile }: SettingsInput,
  checkTogether?: TogetherCheck<SettingsOf<T>>,
): SettingsOutcome<SettingsOf<T>> {
  const faults = new Faults();
  const flags = readFlags(argv, program.options, faults);
  if (flags.has('help')) return { kind: 'help', text: renderHelp(program) };
  if (flags.has('version')) return { kind: 'version' };
  const path = flags.get('config') ?? env[variableOf('config')];
  const file = path === undefined ? new Map() : readSettingsFile(path, program.options, readFile, faults);
  const settings: Record<string, unknown> = {};
  for (const [key, option] of Object.entries(program.options)) {
    const found = findSetting(option, flags, env, file);
    const value = option.value.parse(found.text);
    if (value === undefined) faults.add(found.origin, option.value.expected, found.isSet ? found.text : undefined);
    settings[key] = value;
  }
  // The loop filled `settings` key by key from the same table that the type is derived from.
  const complete = settings as Record<keyof T, unknown> as SettingsOf<T>;
  if (faults.list.length === 0) {
    checkTogether?.(complete, faults);
    checkRules(program.rules ?? [], program.options, settings, faults);
  }
  faults.throwIfAny('settings');
  return { kind: 'run', config: Object.freeze(complete) };
}

type SettingText = { readonly text: string; readonly origin: string; readonly isSet: boolean };

function findSetting(
  { flag, defaultText }: Option<unknown>,
  flags: FlagTexts,
  env: SettingsInput['env'],
  file: FlagTexts,
): SettingText {
  const byFlag = flags.get(flag);
  if (byFlag !== undefined) return { text: byFlag, origin: `--${flag}`, isSet: true };
  const byVariable = env[variableOf(flag)];
  if (byVariable !== undefined) return { text: byVariable, origin: variableOf(flag), isSet: true };
  const byFile = file.get(flag);
  if (byFile !== undefined) return { text: byFile, origin: `${flag} in the --config file`, isSet: true };
  return { text: defaultText, origin: `--${flag}`, isSet: false };
}

/** Reads every setting of the file that has a name and a text. Faults of one setting do not hide those of others. */
function readSettingsFile(
  path: string,
  table: OptionTable,
  readFile: (path: string) => string,
  faults: Faults,
): FlagTexts {
  const texts = new Map<string, string>();
  try {
    decodeYaml(readFile(path), path, settingsInto(texts, table));
  } catch (error) {
    if (error instanceof ConfigError) {
      faults.addAll(error, (place) => `${path}: ${place || 'the whole'}`);
    } else {
      const isNamed = error instanceof Error && 'code' in error && !(error instanceof FileError);
      const got = isNamed ? error.code : String(error);
      faults.add('--config', `a file that can be read, ${path}`, got);
    }
  }
  return texts;
}

/**
 * Builds a decoder that puts the settings of a file into `texts`. An empty file has no settings. Values become texts,
 * so that each setting is parsed in one way only.
 */
function settingsInto(texts: Map<string, string>, table: OptionTable): Decoder<FlagTexts> {
  return (value, path, faults) => {
    if (value === null) return texts;
    if (!isRecord(value)) {
      faults.add(path, 'settings, one `key: value` a line', value);
      return undefined;
    }
    const options = new Map(Object.values(table).map((option) => [option.flag, option]));
    for (const [key, entry] of Object.entries(value)) {
      const option = options.get(key);
      const items = Array.isArray(entry) && option?.value.isList ? entry : [entry];
      if (option === undefined) faults.add(key, 'a setting that exists; --help lists them', entry);
      else if (!items.every(isScalar)) faults.add(key, option.value.expected, entry);
      else texts.set(key, items.map((item) => item ?? '').join(','));
    }
    return texts;
  };
}

function isScalar(value: unknown): value is string | number | boolean | null {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}
