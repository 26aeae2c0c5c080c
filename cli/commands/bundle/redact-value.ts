import { isSecretName, redactText } from './redact-text.ts';

/**
 * Removes possible secrets from a value that is written as JSON. The whole value under a secret-sounding name is
 * removed; all other texts, names included, are passed through `redactText`.
 */
export function redactValue(value: unknown): unknown {
  if (typeof value === 'string') return redactText(value);
  if (Array.isArray(value))
    return value.map((inner, index) => (isFlagged(value, index) ? '[removed]' : redactValue(inner)));
  if (!isContainer(value)) return value;
  const isSecret = [value['name'], value['key'], value['Name']].some((name) => isText(name) && isSecretName(name));
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      redactText(name),
      (isSecretName(name) && !isCount(inner)) || (isSecret && /^value/i.test(name)) ? '[removed]' : redactValue(inner),
    ]),
  );
}

/**
 * Keeps of a CNI configuration only values under `allowed` names, at any depth: these are known to contain no secret.
 * Of other fields it keeps the name and the kind of the value. A plugin that we do not know may have anything in its
 * configuration.
 */
export function pickAllowed(value: unknown, allowed: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((inner) => pickAllowed(inner, allowed));
  if (!isContainer(value)) return redactValue(value);
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      redactText(name),
      allowed.has(name) ? pickAllowed(inner, allowed) : `[removed: ${kindOf(inner)}]`,
    ]),
  );
}

/**
 * Names of fields in CNI configurations: of the reference plugins, of ours, and of plugins that are often used with
 * them.
 * @see CNI SPEC, section 1
 */
export const CNI_CONF_NAMES: ReadonlySet<string> = new Set([
  ...['cniVersion', 'cniVersions', 'name', 'type', 'plugins', 'disableCheck', 'disableGC', 'capabilities'],
  ...['portMappings', 'bandwidth', 'ips', 'mac', 'portmap', 'snat', 'ipam', 'backend', 'mtu', 'disableIPv6'],
  ...['bridge', 'isGateway', 'isDefaultGateway', 'forceAddress', 'ipMasq', 'hairpinMode', 'promiscMode', 'vlan'],
  ...['subnet', 'ranges', 'rangeStart', 'rangeEnd', 'gateway', 'routes', 'dst', 'gw', 'dataDir', 'resolvConf'],
  ...['delegates', 'confDir', 'cniDir', 'binDir', 'logLevel', 'logFile', 'logToStderr', 'clusterNetwork'],
  ...['defaultNetworks', 'networks', 'multusNamespace', 'sysctl', 'master', 'mode', 'socket', 'timeout'],
]);

/** Returns whether an item of a list is the value of a secret flag: `['--token', 'abc']`. */
function isFlagged(list: readonly unknown[], index: number): boolean {
  const before = list[index - 1];
  return isText(before) && /^--?[\w.-]+$/.test(before) && isSecretName(before);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'boolean' || value === null;
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return `list of ${value.length}`;
  if (value === null) return 'null';
  return typeof value === 'string' ? 'text' : typeof value;
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
