import { type Decoder, isRecord, record } from '../runtime/decode.ts';
import {
  NODE_ENI_CONFIG,
  NODE_ENI_CONFIG_KIND,
  type NodeEniConfigFields,
  type NodeEniConfigSpec,
} from './node-eni-config-fields.ts';
import { checkNodeEniConfig } from './node-eni-config-rules.ts';
import { unknownFieldsOf } from './unknown-fields.ts';

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
  return unknownFieldsOf(config.object, NODE_ENI_CONFIG_KIND.fields);
}

/** The fields of the spec that the agent owns and always writes together. */
export type AgentOwnedSpec = Required<
  Pick<NodeEniConfigSpec, 'desiredRouteENIIP' | 'releasableIPs' | 'observedSupplyEpoch'>
>;

/** Returns the whole object with the agent's fields changed and everything else as it was. Pure. */
export function withAgentSpec(config: NodeEniConfig, own: AgentOwnedSpec): Readonly<Record<string, unknown>> {
  const spec = config.object['spec'];
  return { ...config.object, spec: { ...(isRecord(spec) ? spec : {}), ...own } };
}
