import { type Decoder, type Fault, isRecord, record } from '../runtime/decode.ts';
import { type NodeSettings, readNodeSettings } from './node-eni-config-annotations.ts';
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
  /** What people set by annotations, as far as it can be accepted without knowing what is in use. */
  readonly settings: NodeSettings;
  /** What is wrong with the annotations that were not; no reason to refuse the object. */
  readonly annotationFaults: readonly Fault[];
};

/**
 * Decodes a NodeENIConfig. Fields that we do not know are kept and are no fault: another release may have written them.
 * Notes every fault: shapes, and also duplicates, addresses outside their subnet, half a family. A malformed annotation
 * is ignored and told apart, in `annotationFaults`.
 */
export const nodeEniConfig: Decoder<NodeEniConfig> = (value, path, faults) => {
  const decoded = record(NODE_ENI_CONFIG, 'ignore')(value, path, faults);
  if (decoded === undefined || !isRecord(value)) return undefined;
  checkNodeEniConfig(decoded, faults);
  const { settings, faults: annotationFaults } = readNodeSettings(annotationsOf(value));
  return { ...decoded, object: value, settings, annotationFaults };
};

/** Returns the annotations of an object of unknown shape, as they are. Pure. */
export function annotationsOf(object: Readonly<Record<string, unknown>>): unknown {
  const metadata = object['metadata'];
  return isRecord(metadata) ? metadata['annotations'] : undefined;
}

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
