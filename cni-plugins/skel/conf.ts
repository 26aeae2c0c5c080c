import { CNI_CODE } from '../../agent/api/cni-code.ts';
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
import { parseBackend } from '../client/backend.ts';
import type { PluginName } from '../plugins.ts';
import { CniError } from './error.ts';
import { acceptVersion, type CniVersion, type Command } from './version.ts';

/**
 * Decodes the network configuration that a runtime, or the main plugin that called us for an address, sends on stdin.
 *
 * @throws CniError code 6 when it is no JSON object, 1 when we do not speak its version, 7 with every fault in it.
 * @see https://www.cni.dev/docs/spec/#section-1-network-configuration-format
 */
export function decodeConf(stdin: string, plugin: PluginName, command: Command): PluginConf {
  const conf = parseObject(stdin);
  const wanted = conf['cniVersion'];
  if (wanted !== undefined && typeof wanted !== 'string') {
    throw new CniError(CNI_CODE.decode, `stdin: cniVersion: expected a text, got ${JSON.stringify(wanted)}`, NEXT_STEP);
  }
  const cniVersion = acceptVersion(wanted, command);
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
  return { ...ours, ...common, cniVersion, validAttachments };
}

/**
 * Reads what a DEL needs: where the agent listens. What else may be wrong with the conf, a Pod must be able to end.
 * @throws CniError code 7 when that is what is wrong.
 */
function decodeForDel(conf: Readonly<Record<string, unknown>>, plugin: PluginName): Omit<PluginConf, 'cniVersion'> {
  const faults = new Faults();
  const { backend, timeoutMs } = OUR_FIELDS;
  const decode = record({ backend, timeoutMs }, 'ignore');
  const ipam = decode(isRecord(conf['ipam']) ? conf['ipam'] : {}, 'ipam', faults);
  const main = plugin === 'tke-eni-ipamc' ? {} : decode(conf, '', faults);
  if (faults.list.length > 0) {
    throw new CniError(CNI_CODE.invalidConf, new ConfigError('network configuration', faults.list).message, NEXT_STEP);
  }
  const name = typeof conf['name'] === 'string' ? conf['name'] : '';
  return { ...withDefaults({ ...ipam, ...main }), name, validAttachments: [] };
}

/** Finds the cniVersion in a stdin that may be anything; for answers that must not fail. */
export function peekVersion(stdin: string): string | undefined {
  try {
    const version = parseObject(stdin)['cniVersion'];
    return typeof version === 'string' ? version : undefined;
  } catch {
    // VERSION and error answers are due whatever came in.
    return undefined;
  }
}

/** Holds what we use of a network configuration. */
export type PluginConf = {
  readonly cniVersion: CniVersion;
  /** CNI network name. */
  readonly name: string;
  /** Where the agent listens, as written. */
  readonly backend: string;
  /** Bytes; 0 means the ENI's own. */
  readonly mtu: number;
  readonly disableIPv6: boolean;
  /** Bound of one call to the agent; absent means the command's own. */
  readonly timeoutMs?: number;
  /** Goes into the result as it is. */
  readonly dns?: Readonly<Record<string, unknown>>;
  readonly prevResult?: PrevResult;
  /** What GC must leave alone. */
  readonly validAttachments: readonly { readonly containerID: string; readonly ifname: string }[];
};

/** Holds the result of the plugin before us, or of our own ADD; items as they came, checked for the fields that we read. */
export type PrevResult = {
  readonly interfaces: readonly Readonly<Record<string, unknown>>[];
  readonly ips: readonly Readonly<Record<string, unknown>>[];
  readonly routes: readonly Readonly<Record<string, unknown>>[];
  readonly dns?: Readonly<Record<string, unknown>>;
  /** All of it, as it came. */
  readonly raw: Readonly<Record<string, unknown>>;
};

/** Is the backend of a conf that names none. */
export const DEFAULT_BACKEND = 'unix:/run/tke-eni/agent.sock';

const NEXT_STEP = 'mend the file in /etc/cni/net.d that the runtime loaded (the agent writes ours anew when it starts)';

type Ours = Pick<PluginConf, 'backend' | 'mtu' | 'disableIPv6' | 'timeoutMs'>;

const backend: Decoder<string> = (value, path, faults) => {
  if (typeof value === 'string' && parseBackend(value) !== undefined) return value;
  faults.add(path, '"unix:" and the absolute path of a socket (107 bytes at most), or "host:port"', value);
  return undefined;
};

/** Lists our fields; they mean the same in the main object and in the ipam section. */
const OUR_FIELDS = {
  backend: optional(backend),
  // 68 is the least that IPv4 allows.
  mtu: optional(orZero(integer(68, 65_535))),
  // Accepted for confs of the product; the agent's answer decides.
  routeTable: optional(integer(0, 0xffff_ffff)),
  disableIPv6: optional(boolean),
  timeoutMs: optional(integer(100, 600_000)),
};

const decodeOurFields = record(OUR_FIELDS, 'reject');

/** Lists the keys that belong to CNI, not to us; what they hold is the runtime's affair. */
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

/** Is the prefix of what the specification adds: cni.dev/valid-attachments, cni.dev/attachments. */
const CNI_PREFIX = 'cni.dev/';

function parseObject(stdin: string): Readonly<Record<string, unknown>> {
  if (stdin.trim() === '') {
    throw new CniError(CNI_CODE.decode, 'stdin: expected a network configuration as JSON, got nothing', NEXT_STEP);
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(stdin);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CniError(CNI_CODE.decode, `stdin: no JSON: ${reason}`, NEXT_STEP, { cause });
  }
  if (!isRecord(parsed)) throw new CniError(CNI_CODE.decode, 'stdin: expected a JSON object', NEXT_STEP);
  return parsed;
}

function decodeMainSection(conf: Readonly<Record<string, unknown>>, faults: Faults): Ours | undefined {
  const entries = Object.entries(conf).filter(([key]) => !CNI_KEYS.includes(key) && !key.startsWith(CNI_PREFIX));
  const ours = decodeOurFields(Object.fromEntries(entries), '', faults);
  // `"ipam": {}` is how a runtime writes none.
  const ipam = decodeIpam(conf['ipam'] ?? {}, faults);
  return ours === undefined || ipam === undefined ? undefined : withDefaults({ ...ipam, ...ours });
}

function decodeIpamSection(conf: Readonly<Record<string, unknown>>, faults: Faults): Ours | undefined {
  // The other keys are the main plugin's, ptp's or bridge's; its mtu is for the link, which is its own.
  const ipam = decodeIpam(conf['ipam'], faults);
  return ipam === undefined ? undefined : withDefaults(ipam);
}

const decodeIpam: (value: unknown, faults: Faults) => Partial<Ours> | undefined = (value, faults) =>
  record({ type: optional(oneOf(['tke-eni-ipamc'])), ...OUR_FIELDS }, 'reject')(value, 'ipam', faults);

function withDefaults({ backend = DEFAULT_BACKEND, mtu = 0, disableIPv6 = false, timeoutMs }: Partial<Ours>): Ours {
  return { backend, mtu, disableIPv6, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
}

const object: Decoder<Readonly<Record<string, unknown>>> = (value, path, faults) => {
  if (isRecord(value)) return value;
  faults.add(path, 'an object', value);
  return undefined;
};

/** Passes an object on as it is once the fields that we read in it are sound. */
function checked(fields: Parameters<typeof record>[0]): Decoder<Readonly<Record<string, unknown>>> {
  const check = record(fields, 'ignore');
  return (value, path, faults) => (check(value, path, faults) === undefined || !isRecord(value) ? undefined : value);
}

const decodePrevResult: Decoder<PrevResult> = (value, path, faults) => {
  const raw = object(value, path, faults);
  const parts = record(
    {
      interfaces: optional(list(checked({ name: required(text()), mac: optional(text()), sandbox: optional(text()) }))),
      ips: optional(list(checked({ address: required(text()), interface: optional(integer(-1, 0xffff)) }))),
      routes: optional(list(checked({ dst: required(text()) }))),
      dns: optional(object),
    },
    'ignore',
  )(value, path, faults);
  if (raw === undefined || parts === undefined) return undefined;
  const { interfaces = [], ips = [], routes = [], dns } = parts;
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

/** Reads the list of GC. Its absence is a fault, not an empty list: an empty one releases everything. */
function decodeValidAttachments(
  conf: Readonly<Record<string, unknown>>,
  faults: Faults,
): PluginConf['validAttachments'] {
  // libcni wrote the second name before the specification's was settled, and writes both since.
  const key = ['cni.dev/valid-attachments', 'cni.dev/attachments'].find((candidate) => conf[candidate] !== undefined);
  if (key === undefined) {
    faults.add('cni.dev/valid-attachments', 'the list of attachments to keep, as GC requires', undefined);
    return [];
  }
  // libcni writes null for a list without elements.
  return conf[key] === null ? [] : (attachments(conf[key], key, faults) ?? []);
}

function orZero(decoder: Decoder<number>): Decoder<number> {
  return (value, path, faults) => (value === 0 ? 0 : decoder(value, path, faults));
}
