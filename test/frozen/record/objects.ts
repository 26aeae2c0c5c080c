import { eipClaim } from '../../../crd/eip-claim.ts';
import { nodeEniConfig } from '../../../crd/node-eni-config.ts';
import { staticIpConfig } from '../../../crd/static-ip-config.ts';
import { underlayIp } from '../../../crd/underlay-ip.ts';
import { vpcEni } from '../../../crd/vpc-eni.ts';
import { vpcIp } from '../../../crd/vpc-ip.ts';
import { vpcIpClaim } from '../../../crd/vpc-ip-claim.ts';
import { type Decoder, decodeOrThrow } from '../../../runtime/decode.ts';
import { isObject, type JsonObject } from '../../../sim/support/netns.ts';

/** Names of the recorded objects; a NodeENIConfig holds sixteen intents, so there is one for each phase of them. */
export const OBJECTS = [
  ...['nodeeniconfig-recorded', 'nodeeniconfig-accepted', 'nodeeniconfig-unclear'],
  ...['vpcip', 'vpcipclaim', 'vpceni', 'eipclaim', 'staticipconfig', 'underlayip'],
];

type Known = { readonly spec?: object; readonly status?: object };

const DECODERS: Readonly<Record<string, Decoder<Known>>> = {
  NodeENIConfig: nodeEniConfig,
  VpcIP: vpcIp,
  VpcIPClaim: vpcIpClaim,
  VpcENI: vpcEni,
  EIPClaim: eipClaim,
  StaticIPConfig: staticIpConfig,
  UnderlayIP: underlayIp,
};

/** Has the product read an object, and returns it with what the product knows of its spec and status, and nothing else. */
export function rewriteObject(object: JsonObject): JsonObject {
  const decoder = DECODERS[String(object['kind'])];
  if (decoder === undefined) throw new Error(`no decoder of ${object['kind']}`);
  const { spec, status } = decodeOrThrow(decoder, object, String(object['kind']));
  return { ...object, spec, status };
}

/** Lists the paths of all fields that a schema has, `[]` for the items of lists; maps end a path. */
export function fieldsOfSchema(schema: unknown, path = ''): readonly string[] {
  if (!isObject(schema)) return [];
  const { properties, items } = schema;
  if (isObject(items)) return fieldsOfSchema(items, `${path}[]`);
  if (!isObject(properties)) return [path];
  return Object.entries(properties).flatMap(([name, inner]) =>
    fieldsOfSchema(inner, path === '' ? name : `${path}.${name}`),
  );
}

/** Lists the paths of all fields that a value has, likewise; the paths of what is in a map are there too. */
export function fieldsOfValue(value: unknown, path = ''): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((item) => fieldsOfValue(item, `${path}[]`));
  if (!isObject(value)) return [path];
  const inner = Object.entries(value).flatMap(([name, item]) =>
    fieldsOfValue(item, path === '' ? name : `${path}.${name}`),
  );
  return [path, ...inner];
}
