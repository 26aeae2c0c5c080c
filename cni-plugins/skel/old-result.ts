import type { Attachment } from '../../agent/api/messages.ts';
import type { JsonObject } from '../../runtime/json.ts';
import type { PluginConf } from './conf.ts';

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
