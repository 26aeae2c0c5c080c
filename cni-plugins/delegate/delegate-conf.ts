import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { CNI_CODE } from '../../agent/api/cni-code.ts';
import { isRecord } from '../../runtime/decode.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { recordOf } from '../../runtime/json.ts';
import { joinLimited, limitText } from '../../runtime/limit-text.ts';
import { readRegularText } from '../../runtime/read-regular-file.ts';
import { PLUGINS } from '../plugins.ts';
import { CniError } from '../skel/error.ts';
import { type CniVersion, isAtLeast, SUPPORTED_VERSIONS } from '../skel/version.ts';

/** A network that other plugins make: those of a list, or the only one of a single configuration. */
export type DelegateConf = {
  readonly name: string;
  /** As written; absent: that of the configuration by which we were called. */
  readonly cniVersion?: string;
  readonly disableCheck?: true;
  readonly disableGC?: true;
  /** Each unchanged, with its `type`. */
  readonly plugins: readonly DelegatePlugin[];
};

/** The configuration of one plugin. */
export type DelegatePlugin = Readonly<Record<string, unknown>> & { readonly type: string };

/**
 * Reads a network configuration, or a list of them, as far as it has to be read to be passed on.
 * @throws Error that says what is expected where.
 */
export function delegateConfOf(value: unknown): DelegateConf {
  if (!isRecord(value)) throw new Error('expected a JSON object');
  const { name, cniVersion, plugins } = value;
  if (typeof name !== 'string' || name === '') throw new Error('name: expected the name of the network');
  if (cniVersion !== undefined && typeof cniVersion !== 'string') throw new Error('cniVersion: expected a text');
  const listed: readonly unknown[] = Array.isArray(plugins) ? plugins : [value];
  if (listed.length === 0 || listed.length > MAX_PLUGINS) throw new Error(`plugins: expected 1 to ${MAX_PLUGINS}`);
  return {
    name,
    ...(cniVersion === undefined ? {} : { cniVersion }),
    ...(isTrue(value['disableCheck']) ? { disableCheck: true } : {}),
    ...(isTrue(value['disableGC']) ? { disableGC: true } : {}),
    plugins: listed.map(pluginOf),
  };
}

/**
 * Returns what a plugin gets on standard input, as a runtime makes it: name and version of the list, of `runtimeConfig` what
 * its capabilities name, and the result so far.
 */
export function stdinOf(
  { name }: DelegateConf,
  plugin: DelegatePlugin,
  call: {
    readonly cniVersion: string;
    readonly runtimeConfig: Readonly<Record<string, unknown>>;
    readonly more?: Readonly<Record<string, unknown>>;
  },
): Readonly<Record<string, unknown>> {
  const capabilities = recordOf(plugin['capabilities']);
  const passed = Object.entries(call.runtimeConfig).filter(([key]) => capabilities[key] === true);
  return {
    ...plugin,
    ...{ name, cniVersion: call.cniVersion },
    ...(passed.length === 0 ? {} : { runtimeConfig: Object.fromEntries(passed) }),
    ...call.more,
  };
}

/** Whether a network of this version has what another version brought; a version that we do not have is an older one. */
export function hasSince(cniVersion: string, since: CniVersion): boolean {
  const version = SUPPORTED_VERSIONS.find((one) => one === cniVersion);
  return version !== undefined && isAtLeast(version, since);
}

const MAX_PLUGINS = 16;

function pluginOf(value: unknown): DelegatePlugin {
  if (!isRecord(value)) throw new Error('plugins: expected objects');
  const { type } = value;
  // The name of a file in a folder of CNI_PATH, and no way out of it.
  if (typeof type !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/.test(type)) {
    throw new Error('type: expected the name of a plugin');
  }
  if (Object.hasOwn(PLUGINS, type)) throw new Error(`type: ${type} would call itself`);
  return { ...value, type };
}

/** The specification has these as booleans, and had them as texts. */
function isTrue(value: unknown): boolean {
  return value === true || value === 'true';
}

/**
 * Finds the network of a name among the configuration files of a folder: sorted by file, the first that matches. A file
 * that cannot be read as a network configuration is passed over, and named when nothing matches.
 * @param refusal Why the name is none of the agent's networks, with those that are.
 * @throws CniError code 7 with the names that are accepted; 5 when the folder cannot be read.
 */
export function findDelegate(folder: string, name: string, refusal: string): DelegateConf {
  const names: string[] = [];
  const faults: string[] = [];
  for (const file of confFilesOf(folder)) {
    try {
      const conf = delegateConfOf(JSON.parse(readRegularText(join(folder, file), MAX_CONF_BYTES)));
      if (conf.name === name) return conf;
      names.push(conf.name);
    } catch (error) {
      faults.push(`${file}: ${limitText(messageOf(error), MAX_FAULT)}`);
    }
  }
  const here = names.length === 0 ? 'which has none' : `which has ${joinLimited([...new Set(names)].toSorted())}`;
  throw new CniError(
    CNI_CODE.invalidConf,
    `${refusal}; nor is it the network of a file in ${folder}, ${here}`,
    faults.length === 0 ? "correct the Pod's annotation, or add the file" : `not read: ${joinLimited(faults, '; ')}`,
  );
}

/** Far longer than any configuration: a folder of other files must not keep a Pod's ADD busy. */
const MAX_CONF_BYTES = 256 * 1024;
const MAX_FILES = 256;
const MAX_FAULT = 200;
/** Those that libcni loads. */
const CONF_FILE = /\.(conf|conflist|json)$/;

function confFilesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((file) => CONF_FILE.test(file))
      .toSorted()
      .slice(0, MAX_FILES);
  } catch (cause) {
    const why = messageOf(cause);
    const next = 'make the folder on the node, or set --delegate-conf-dir of the agent to another';
    throw new CniError(CNI_CODE.io, `${folder}: ${why}`, next, { cause });
  }
}
