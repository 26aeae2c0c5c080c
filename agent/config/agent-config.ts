import { ConfigError, type Decoder, Faults, isRecord } from '../../runtime/decode.ts';
import { type AgentConfig, OPTIONS, type Option, type OptionKey } from './options.ts';
import { type FlagTexts, readFlags } from './read-flags.ts';
import { decodeYaml } from './read-yaml.ts';
import { renderHelp, variableOf } from './render-options.ts';

/** Exit status of a process whose settings are wrong. @see sysexits.h EX_CONFIG */
export const EX_CONFIG = 78;

/** Where settings come from; the caller reads the process and the disk. */
export type ConfigInput = {
  /** Without the interpreter and the script. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Returns the text of a file. @throws its own error when it cannot. */
  readonly readFile: (path: string) => string;
};

/** What the caller asked for. */
export type ConfigOutcome =
  | { readonly kind: 'run'; readonly config: AgentConfig }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'version' };

/**
 * Reads the settings: flags before variables before the file before defaults. Pure but for `readFile`.
 * @throws ConfigError with every fault of all three sources; exit with `EX_CONFIG` then.
 */
export function readAgentConfig({ argv, env, readFile }: ConfigInput): ConfigOutcome {
  const faults = new Faults();
  const flags = readFlags(argv, faults);
  if (flags.has('help')) return { kind: 'help', text: renderHelp() };
  if (flags.has('version')) return { kind: 'version' };
  const path = flags.get('config') ?? env[variableOf('config')];
  const file = path === undefined ? new Map() : readSettingsFile(path, readFile, faults);
  const config: Record<string, unknown> = {};
  for (const [key, option] of Object.entries<Option<unknown>>(OPTIONS)) {
    const given = findGiven(option, flags, env, file);
    const value = option.value.parse(given.text);
    if (value === undefined) faults.add(given.origin, option.value.expected, given.text);
    config[key] = value;
  }
  if (faults.list.length === 0) checkTogether(config as Record<OptionKey, unknown> as AgentConfig, faults);
  faults.throwIfAny('settings');
  // The loop filled `config` key by key from the same table that the type is made of.
  return { kind: 'run', config: Object.freeze(config as AgentConfig) };
}

type Given = { readonly text: string; readonly origin: string };

function findGiven(
  { flag, defaultText }: Option<unknown>,
  flags: FlagTexts,
  env: ConfigInput['env'],
  file: FlagTexts,
): Given {
  const byFlag = flags.get(flag);
  if (byFlag !== undefined) return { text: byFlag, origin: `--${flag}` };
  const byVariable = env[variableOf(flag)];
  if (byVariable !== undefined) return { text: byVariable, origin: variableOf(flag) };
  const byFile = file.get(flag);
  if (byFile !== undefined) return { text: byFile, origin: `${flag} in the --config file` };
  return { text: defaultText, origin: `default of --${flag}` };
}

/** Returns every setting of the file that has a name and a text, whatever is wrong with others: faults come all at once. */
function readSettingsFile(path: string, readFile: (path: string) => string, faults: Faults): FlagTexts {
  const texts = new Map<string, string>();
  try {
    decodeYaml(readFile(path), path, settingsInto(texts));
  } catch (error) {
    if (error instanceof ConfigError) {
      for (const fault of error.faults) faults.list.push({ ...fault, path: `${path}: ${fault.path || 'the whole'}` });
    } else {
      const got = error instanceof Error && 'code' in error ? error.code : String(error);
      faults.add('--config', `a file that can be read, ${path}`, got);
    }
  }
  return texts;
}

/** An empty file has no settings. Values are turned to texts: each setting has one way to be read. */
function settingsInto(texts: Map<string, string>): Decoder<FlagTexts> {
  return (value, path, faults) => {
    if (value === null) return texts;
    if (!isRecord(value)) {
      faults.add(path, 'settings, one `key: value` a line', value);
      return undefined;
    }
    const options = new Map(Object.values<Option<unknown>>(OPTIONS).map((option) => [option.flag, option]));
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

/** Notes settings that are fine each by itself and not together. */
function checkTogether(config: AgentConfig, faults: Faults): void {
  if (config.forceReuseAfterMs > config.addWaitMs) {
    faults.add('--force-reuse-after', `at most --add-wait, ${config.addWaitMs} ms`, config.forceReuseAfterMs);
  }
  if (config.listenAddress !== '' && config.listenAddress === config.metricsAddress) {
    faults.add('--listen-address', 'another address than --metrics-address', config.listenAddress);
  }
}
