import { CNI_CODE } from '../../agent/api/cni-code.ts';
import { DEFAULT_DATA_DIR } from '../../agent/api/data-dir.ts';
import {
  boolean,
  ConfigError,
  type Decoder,
  Faults,
  integer,
  isRecord,
  list,
  oneOf,
  optional,
  record,
  required,
  text,
} from '../../runtime/decode.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { listOf, recordOf } from '../../runtime/json.ts';
import { limitText } from '../../runtime/limit-text.ts';
import { parseBackend } from '../client/backend.ts';
import type { PluginName } from '../plugins.ts';
import { CniError } from './error.ts';
import { acceptVersion, type CniVersion, type Command } from './version.ts';

/**
 * Decodes the network configuration that a runtime sends on stdin, or a main plugin that requests an address.
 *
 * @throws CniError code 6 when it is not a JSON object, 1 for an unsupported version, 7 with every fault in it.
 * @see https://www.cni.dev/docs/spec/#section-1-network-configuration-format
 */
export function decodeConf(stdin: string, plugin: PluginName, command: Command): PluginConf {
  const conf = parseObject(stdin);
  const requested = conf['cniVersion'];
  if (requested !== undefined && typeof requested !== 'string') {
    throw new CniError(
      CNI_CODE.decode,
      `stdin: cniVersion: expected a text, got ${JSON.stringify(requested)}`,
      NEXT_STEP,
    );
  }
  const cniVersion = acceptVersion(requested, command);
  if (command === 'DEL') return { ...decodeForDel(conf, plugin), cniVersion };
  const faults = new Faults();
  const common = decodeCommon(conf, '', faults);
  const ours = plugin === 'tke-eni-ipamc' ? decodeIpamSection(conf, faults) : decodeMainSection(conf, faults);
  const validAttachments = command === 'GC' ? decodeValidAttachments(conf, faults) : [];
  if (command === 'CHECK' && (conf['prevResult'] ?? undefined) === undefined) {
    faults.add('prevResult', 'the result of ADD, as CHECK requires', conf['prevResult']);
  }
  if (faults.list.length > 0 || common === undefined || ours === undefined) {
    throw new CniError(CNI_CODE.invalidConf, new ConfigError('network configuration', faults.list).message, NEXT_STEP);
  }
  return {
    ...ours,
    ...common,
    cniVersion,
    validAttachments,
    portMappings: portMappingsOf(conf),
    runtimeConfig: runtimeConfigOf(conf),
    ignoredKeys: ignoredKeysOf(conf, plugin),
  };
}

/**
 * Reads what a DEL needs: the address of the agent, the folder of delegations. Other faults of the conf are ignored, because a Pod must always be
 * deletable.
 * @throws CniError code 7 when that address is at fault.
 */
function decodeForDel(conf: Readonly<Record<string, unknown>>, plugin: PluginName): Omit<PluginConf, 'cniVersion'> {
  const faults = new Faults();
  const { backend, timeoutMs, dataDir } = OUR_FIELDS;
  const decode = record({ backend, timeoutMs, dataDir }, 'ignore');
  const ipam = decode(recordOf(conf['ipam']), 'ipam', faults);
  const main = plugin === 'tke-eni-ipamc' ? {} : decode(conf, '', faults);
  if (faults.list.length > 0) {
    throw new CniError(CNI_CODE.invalidConf, new ConfigError('network configuration', faults.list).message, NEXT_STEP);
  }
  const name = typeof conf['name'] === 'string' ? conf['name'] : '';
  const portMappings = portMappingsOf(conf);
  const prevResult = isRecord(conf['prevResult']) ? { prevResult: uncheckedResult(conf['prevResult']) } : {};
  const runtimeConfig = runtimeConfigOf(conf);
  return {
    ...withDefaults({ ...ipam, ...main }),
    name,
    validAttachments: [],
    portMappings,
    runtimeConfig,
    ignoredKeys: [],
    ...prevResult,
  };
}

/** Finds the cniVersion in any stdin; for answers that must not fail. */
export function peekVersion(stdin: string): string | undefined {
  try {
    const version = parseObject(stdin)['cniVersion'];
    return typeof version === 'string' ? version : undefined;
  } catch {
    // VERSION and error answers are required for any input.
    return undefined;
  }
}

/** The fields of a network configuration that are used. */
export type PluginConf = {
  readonly cniVersion: CniVersion;
  /** Name of the CNI network. */
  readonly name: string;
  /** The address of the agent, as written. */
  readonly backend: string;
  /** Bytes; 0 means the MTU of the ENI. */
  readonly mtu: number;
  readonly disableIPv6: boolean;
  /** Time limit of one call to the agent; absent means that of the command. */
  readonly timeoutMs?: number;
  /** Copied into the result unchanged. */
  readonly dns?: Readonly<Record<string, unknown>>;
  readonly prevResult?: PrevResult;
  /** Ports of the node that lead to this Pod, as the runtime sent them; those with a hostPort. */
  readonly portMappings: readonly PortMapping[];
  /** What the runtime sent for capabilities, unchanged. */
  readonly runtimeConfig: Readonly<Record<string, unknown>>;
  /** Folder for what has to outlive a reboot. */
  readonly dataDir: string;
  /** The main plugin keeps the rules and routes of its Pods itself, and gets the ENI as their uplink. */
  readonly uplink: boolean;
  /** No plugin after this one needs the place of this link's traffic filters: false for a Pod with a bandwidth limit. */
  readonly filterPlace: boolean;
  /** Keys that are not known, and not used: of a product's conf, or misspelled. At most 16, cut to 64 characters. */
  readonly ignoredKeys: readonly string[];
  /** The attachments that GC must keep; undefined when the caller does not say which. */
  readonly validAttachments: readonly { readonly containerID: string; readonly ifname: string }[] | undefined;
};

/** One entry of `runtimeConfig.portMappings`, unchanged, and the port of the node. @see CNI CONVENTIONS.md, "portMappings" */
type PortMapping = { readonly hostPort: number; readonly entry: Readonly<Record<string, unknown>> };

/**
 * The result of the previous plugin, or of this plugin's ADD. Its items are unchanged; the fields that are read are
 * checked.
 */
export type PrevResult = {
  readonly interfaces: readonly Readonly<Record<string, unknown>>[];
  readonly ips: readonly Readonly<Record<string, unknown>>[];
  readonly routes: readonly Readonly<Record<string, unknown>>[];
  readonly dns?: Readonly<Record<string, unknown>>;
  /** The whole object as it was sent. */
  readonly raw: Readonly<Record<string, unknown>>;
};

/** The backend of a conf that names none. */
export const DEFAULT_BACKEND = 'unix:/run/tke-eni/agent.sock';

const NEXT_STEP =
  'correct the file in /etc/cni/net.d that the runtime loaded (the agent writes ours again when it starts)';

type Ours = Pick<PluginConf, 'backend' | 'mtu' | 'disableIPv6' | 'timeoutMs' | 'dataDir' | 'uplink' | 'filterPlace'>;

const backend: Decoder<string> = (value, path, faults) => {
  if (typeof value === 'string' && parseBackend(value) !== undefined) return value;
  faults.add(path, '"unix:" and the absolute path of a socket (107 bytes at most), or "host:port"', value);
  return undefined;
};

/** The fields of this plugin. They have the same meaning in the main object and in the ipam section. */
const OUR_FIELDS = {
  backend: optional(backend),
  // 68 is the smallest MTU that IPv4 allows.
  mtu: optional(orZero(integer(68, 65_535))),
  // Accepted because confs of Tencent's product have it; the agent's answer decides.
  routeTable: optional(integer(0, 0xffff_ffff)),
  disableIPv6: optional(boolean),
  timeoutMs: optional(integer(100, 600_000)),
  dataDir: optional(text(/^\/[^\0]*$/, 'an absolute path')),
};

/** The fields of a main plugin. */
const MAIN_FIELDS = { ...OUR_FIELDS, filterPlace: optional(boolean) };

const decodeMainFields = record(MAIN_FIELDS, 'ignore');

/** The keys that CNI defines. This plugin does not check their values. */
const CNI_KEYS: readonly string[] = [
  'cniVersion',
  'cniVersions',
  'name',
  'type',
  'args',
  'runtimeConfig',
  'capabilities',
  'dns',
  'ipMasq',
  'ipam',
  'prevResult',
  'disableCheck',
  'disableGC',
  'loadOnlyInlinedPlugins',
];

/** Prefix of keys that the specification adds: cni.dev/valid-attachments, cni.dev/attachments. */
const CNI_PREFIX = 'cni.dev/';

function parseObject(stdin: string): Readonly<Record<string, unknown>> {
  if (stdin.trim() === '') {
    throw new CniError(CNI_CODE.decode, 'stdin: expected a network configuration as JSON, got nothing', NEXT_STEP);
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(stdin);
  } catch (cause) {
    const reason = messageOf(cause);
    throw new CniError(CNI_CODE.decode, `stdin: no JSON: ${reason}`, NEXT_STEP, { cause });
  }
  if (!isRecord(parsed)) throw new CniError(CNI_CODE.decode, 'stdin: expected a JSON object', NEXT_STEP);
  return parsed;
}

function decodeMainSection(conf: Readonly<Record<string, unknown>>, faults: Faults): Ours | undefined {
  const ours = decodeMainFields(conf, '', faults);
  // A runtime writes `"ipam": {}` for none.
  const ipam = decodeIpam(conf['ipam'] ?? {}, OUR_FIELDS, faults);
  if (ours === undefined || ipam === undefined) return undefined;
  const isLimited = Object.hasOwn(runtimeConfigOf(conf), 'bandwidth');
  return withDefaults({ ...ipam, ...ours, filterPlace: ours.filterPlace === true && !isLimited });
}

function decodeIpamSection(conf: Readonly<Record<string, unknown>>, faults: Faults): Ours | undefined {
  // The other keys belong to the main plugin, such as ptp or bridge. Its mtu is for the link, which it makes itself.
  const ipam = decodeIpam(conf['ipam'], IPAM_FIELDS, faults);
  if (ipam?.uplink === true && conf['cniVersion'] === '0.2.0') {
    faults.add('cniVersion', '0.3.0 or later, as the result of 0.2.0 has no interface for ipam.uplink', '0.2.0');
  }
  return ipam === undefined ? undefined : withDefaults(ipam);
}

/** The fields of the ipam section of a main plugin. */
const IPAM_FIELDS = { ...OUR_FIELDS, uplink: optional(boolean) };

function decodeIpam(
  value: unknown,
  fields: typeof OUR_FIELDS | typeof IPAM_FIELDS,
  faults: Faults,
): Partial<Ours> | undefined {
  return record({ type: optional(oneOf(['tke-eni-ipamc'])), ...fields }, 'ignore')(value, 'ipam', faults);
}

/** Lists keys that are not used. Of a main plugin's conf only those in the ipam section: the others are its own. */
function ignoredKeysOf(conf: Readonly<Record<string, unknown>>, plugin: PluginName): readonly string[] {
  const isIpam = plugin === 'tke-eni-ipamc';
  const known = isIpam ? IPAM_FIELDS : OUR_FIELDS;
  const main = Object.keys(isIpam ? {} : conf).filter(
    (key) => !Object.hasOwn(MAIN_FIELDS, key) && !CNI_KEYS.includes(key) && !key.startsWith(CNI_PREFIX),
  );
  const ipam = Object.keys(recordOf(conf['ipam'])).filter((key) => key !== 'type' && !Object.hasOwn(known, key));
  return [...main, ...ipam.map((key) => `ipam.${key}`)]
    .slice(0, MAX_IGNORED_KEYS)
    .map((key) => limitText(key, MAX_IGNORED_CHARS));
}

const MAX_IGNORED_KEYS = 16;
const MAX_IGNORED_CHARS = 64;

function withDefaults({
  backend = DEFAULT_BACKEND,
  mtu = 0,
  disableIPv6 = false,
  dataDir = DEFAULT_DATA_DIR,
  uplink = false,
  filterPlace = false,
  timeoutMs,
}: Partial<Ours>): Ours {
  const ours = { backend, mtu, disableIPv6, dataDir, uplink, filterPlace };
  return { ...ours, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
}

const object: Decoder<Readonly<Record<string, unknown>>> = (value, path, faults) => {
  if (isRecord(value)) return value;
  faults.add(path, 'an object', value);
  return undefined;
};

/** Returns a decoder that checks the given fields and passes the object on unchanged. */
function checked(fields: Parameters<typeof record>[0]): Decoder<Readonly<Record<string, unknown>>> {
  const check = record(fields, 'ignore');
  return (value, path, faults) => (check(value, path, faults) === undefined || !isRecord(value) ? undefined : value);
}

const decodePrevResult: Decoder<PrevResult> = (value, path, faults) => {
  const raw = object(value, path, faults);
  const fields = record(
    {
      interfaces: optional(list(checked({ name: required(text()), mac: optional(text()), sandbox: optional(text()) }))),
      ips: optional(list(checked({ address: required(text()), interface: optional(integer(-1, 0xffff)) }))),
      routes: optional(list(checked({ dst: required(text()) }))),
      dns: optional(object),
    },
    'ignore',
  )(value, path, faults);
  if (raw === undefined || fields === undefined) return undefined;
  const { interfaces = [], ips = [], routes = [], dns } = fields;
  return { interfaces, ips, routes, raw, ...(dns === undefined ? {} : { dns }) };
};

const decodeCommon = record(
  {
    name: required(text(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, 'a letter or digit, then letters, digits, "_", "." or "-"')),
    dns: optional(
      checked({
        nameservers: optional(list(text())),
        domain: optional(text()),
        search: optional(list(text())),
        options: optional(list(text())),
      }),
    ),
    prevResult: optional(decodePrevResult),
  },
  'ignore',
);

const attachments = list(record({ containerID: required(text()), ifname: required(text()) }, 'ignore'));

/** Reads the list of GC. A missing list is not an empty one, which releases everything: `cnitool gc` sends none. */
function decodeValidAttachments(
  conf: Readonly<Record<string, unknown>>,
  faults: Faults,
): PluginConf['validAttachments'] {
  // libcni wrote the second name before the specification settled on the first, and has written both since.
  const key = ['cni.dev/valid-attachments', 'cni.dev/attachments'].find((candidate) => conf[candidate] !== undefined);
  if (key === undefined) return undefined;
  // libcni writes null for an empty list.
  return conf[key] === null ? [] : (attachments(conf[key], key, faults) ?? []);
}

/**
 * Reads the entries that map a port; runtimes also send containers' ports without a hostPort. What they hold is checked by portmap,
 * which reads keys in any case, as Go does: containerd writes `HostPort`.
 */
function portMappingsOf(conf: Readonly<Record<string, unknown>>): readonly PortMapping[] {
  const entries = recordOf(conf['runtimeConfig'])['portMappings'];
  return listOf(entries)
    .filter(isRecord)
    .flatMap((entry) => {
      const [, value] = Object.entries(entry).find(([key]) => key.toLowerCase() === 'hostport') ?? [];
      const hostPort = Number(value);
      return hostPort > 0 ? [{ hostPort, entry }] : [];
    });
}

function runtimeConfigOf(conf: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return recordOf(conf['runtimeConfig']);
}

/** A result that is passed on and not read. */
function uncheckedResult(raw: Readonly<Record<string, unknown>>): PrevResult {
  return { interfaces: [], ips: [], routes: [], raw };
}

function orZero(decoder: Decoder<number>): Decoder<number> {
  return (value, path, faults) => (value === 0 ? 0 : decoder(value, path, faults));
}
