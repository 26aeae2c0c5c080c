import type { Attachment } from '../../agent/api/messages.ts';
import type { JsonObject } from '../../runtime/json.ts';
import type { PluginConf, PrevResult } from './conf.ts';
import { type CniVersion, isAtLeast } from './version.ts';

/**
 * Builds the result of ADD in the conf's version, after the results of earlier plugins in the chain.
 *
 * @param shape 'ipam' for a plugin that only assigns an address: the main plugin adds its own interfaces, and ours are the
 * uplink that it asked for. 0.2.0 has another form: `makeOldResult`.
 * @see https://www.cni.dev/docs/spec/#add-success
 */
export function makeResult(conf: ResultConf, attachment: Attachment, shape: 'main' | 'ipam'): CniResult {
  const { cniVersion, prevResult, dns = prevResult?.dns } = conf;
  const before = shape === 'ipam' ? undefined : prevResult;
  const offset = before?.interfaces.length ?? 0;
  const ips = attachment.ips.map(({ address, gateway, interfaceIndex }) => ({
    // From 1.0.0 on there is no `version` field: the address itself shows its family.
    ...(isAtLeast(cniVersion, '1.0.0') ? {} : { version: address.includes(':') ? '6' : '4' }),
    ...(shape === 'ipam' || interfaceIndex < 0 ? {} : { interface: offset + interfaceIndex }),
    address,
    ...(gateway === '' ? {} : { gateway }),
  }));
  const routes = attachment.routes.map(({ dst, gw }) => (gw === '' ? { dst } : { dst, gw }));
  return {
    cniVersion,
    ...(shape === 'ipam' && conf.uplink !== true
      ? {}
      : { interfaces: [...(before?.interfaces ?? []), ...makeInterfaces(cniVersion, attachment)] }),
    ips: [...(before?.ips ?? []), ...ips],
    routes: [...(before?.routes ?? []), ...routes],
    ...(dns === undefined ? {} : { dns }),
  };
}

/** A result as it is printed; the fields of its items depend on the version. */
type CniResult = {
  readonly cniVersion: CniVersion;
  readonly interfaces?: readonly JsonObject[];
  readonly ips: readonly JsonObject[];
  readonly routes: readonly JsonObject[];
  readonly dns?: JsonObject;
};

type ResultConf = Pick<PluginConf, 'cniVersion' | 'prevResult' | 'dns'> & Partial<Pick<PluginConf, 'uplink'>>;

function makeInterfaces(cniVersion: CniVersion, { interfaces }: Attachment): readonly JsonObject[] {
  return interfaces.map(({ name, mac, mtu, sandbox }) => ({
    name,
    mac,
    // The field exists since 1.1.0.
    ...(isAtLeast(cniVersion, '1.1.0') && mtu !== 0 ? { mtu } : {}),
    ...(sandbox === '' ? {} : { sandbox }),
  }));
}

/**
 * Builds the result of ADD in version 0.2.0, which has one address of each family and no interfaces. Chains of plugins came
 * with 0.3.0, so there is no result of others to add to.
 *
 * @see https://github.com/containernetworking/cni/blob/spec-v0.2.0/SPEC.md#result
 */
export function makeOldResult({ dns }: Pick<PluginConf, 'dns'>, attachment: Attachment): OldCniResult {
  const [ip4, ip6] = [addressOf(attachment, 4), addressOf(attachment, 6)];
  return {
    cniVersion: '0.2.0',
    ...(ip4 === undefined ? {} : { ip4 }),
    ...(ip6 === undefined ? {} : { ip6 }),
    ...(dns === undefined ? {} : { dns }),
  };
}

/** A result as it is printed. */
type OldCniResult = {
  readonly cniVersion: '0.2.0';
  readonly ip4?: JsonObject;
  readonly ip6?: JsonObject;
  readonly dns?: JsonObject;
};

function addressOf({ ips, routes }: Attachment, family: 4 | 6): JsonObject | undefined {
  const isOfFamily = (text: string): boolean => text.includes(':') === (family === 6);
  const found = ips.find(({ address }) => isOfFamily(address));
  if (found === undefined) return undefined;
  const { address, gateway } = found;
  return {
    ip: address,
    ...(gateway === '' ? {} : { gateway }),
    routes: routes.filter(({ dst }) => isOfFamily(dst)).map(({ dst, gw }) => (gw === '' ? { dst } : { dst, gw })),
  };
}

/**
 * Lists how the result that the runtime stored from ADD differs from what the agent holds. Additions of later plugins
 * in the chain are not a difference.
 *
 * @param attachment what the agent holds; absent when its release does not report it.
 */
export function comparePrevResult(
  prevResult: PrevResult,
  attachment: Attachment | undefined,
  ifName: string,
  shape: 'main' | 'ipam',
): readonly string[] {
  const differences: string[] = [];
  const addresses = prevResult.ips.map(({ address }) => String(address));
  if (addresses.length === 0) differences.push('prevResult: no address');
  for (const { address } of attachment?.ips ?? []) {
    if (!addresses.includes(address)) {
      differences.push(`prevResult: the agent holds ${address}, prevResult has ${addresses.join(', ') || 'none'}`);
    }
  }
  if (shape === 'main') {
    const ours = prevResult.interfaces.find(({ name, sandbox }) => name === ifName && isText(sandbox));
    if (ours === undefined) differences.push(`prevResult: no interface ${ifName} in a sandbox`);
    const actual = attachment?.interfaces.find(({ name, sandbox }) => name === ifName && sandbox !== '');
    if (ours !== undefined && actual !== undefined && isText(ours['mac']) && ours['mac'].toLowerCase() !== actual.mac) {
      differences.push(`prevResult: ${ifName} has MAC ${ours['mac']}, the agent holds ${actual.mac}`);
    }
  }
  return differences;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
