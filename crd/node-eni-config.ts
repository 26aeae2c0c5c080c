import { type Decoder, isRecord, record } from '../runtime/decode.ts';
import {
  ADDRESS,
  ENI_INFO,
  NODE_ENI_CONFIG,
  type NodeEniConfigFields,
  type NodeEniConfigSpec,
  SPEC,
  STATUS,
} from './node-eni-config-fields.ts';
import { checkNodeEniConfig } from './node-eni-config-rules.ts';

/** The fields that we know of a NodeENIConfig (`nec`), one per node, named as the node. Fields keep their API names. */
export type NodeEniConfig = NodeEniConfigFields & {
  /** The whole object as it was read: what we do not know is in here and is written back. */
  readonly object: Readonly<Record<string, unknown>>;
};

/**
 * Decodes a NodeENIConfig. Fields that we do not know are kept and are no fault: another release may have written them.
 * Notes every fault: shapes, and also duplicates, addresses outside their subnet, half a family.
 */
export const nodeEniConfig: Decoder<NodeEniConfig> = (value, path, faults) => {
  const decoded = record(NODE_ENI_CONFIG, 'ignore')(value, path, faults);
  if (decoded === undefined || !isRecord(value)) return undefined;
  checkNodeEniConfig(decoded, faults);
  return { ...decoded, object: value };
};

/** Lists the fields that we do not know, as paths: harmless from another release, a spelling mistake from a person. */
export function unknownFields(config: NodeEniConfig): readonly string[] {
  const { spec, status } = config.object;
  const enis = isRecord(status) && Array.isArray(status['eniInfos']) ? status['eniInfos'] : [];
  return [
    ...unknownIn(config.object, NODE_ENI_CONFIG, ''),
    ...unknownIn(spec, SPEC, 'spec.'),
    ...unknownIn(status, STATUS, 'status.'),
    ...enis.flatMap((eni: unknown, index) => unknownInEni(eni, `status.eniInfos[${index}].`)),
  ];
}

function unknownInEni(eni: unknown, path: string): readonly string[] {
  const addresses = isRecord(eni) && Array.isArray(eni['addresses']) ? eni['addresses'] : [];
  return [
    ...unknownIn(eni, ENI_INFO, path),
    ...addresses.flatMap((address: unknown, i) => unknownIn(address, ADDRESS, `${path}addresses[${i}].`)),
  ];
}

function unknownIn(value: unknown, fields: Readonly<Record<string, unknown>>, path: string): readonly string[] {
  if (!isRecord(value)) return [];
  return Object.keys(value)
    .filter((key) => !Object.hasOwn(fields, key))
    .map((key) => `${path}${key}`);
}

/** The fields of the spec that the agent owns. */
export type AgentOwnedSpec = Required<
  Pick<NodeEniConfigSpec, 'desiredRouteENIIP' | 'releasableIPs' | 'observedSupplyEpoch'>
>;

/** Returns the whole object with the agent's fields changed and everything else as it was. Pure. */
export function withAgentSpec(config: NodeEniConfig, own: AgentOwnedSpec): Readonly<Record<string, unknown>> {
  const spec = config.object['spec'];
  return { ...config.object, spec: { ...(isRecord(spec) ? spec : {}), ...own } };
}
