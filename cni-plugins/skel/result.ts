import type { Attachment } from '../../agent/api/messages.ts';
import type { JsonObject } from '../../runtime/json.ts';
import type { PluginConf } from './conf.ts';
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
