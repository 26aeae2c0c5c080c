import { type Decoder, type Fault, isRecord, record } from '../runtime/decode.ts';
import { recordOf } from '../runtime/json.ts';
import type { FieldTable } from './field.ts';
import { type NodeSettings, readNodeSettings } from './node-eni-config-annotations.ts';
import {
  NODE_ENI_CONFIG,
  NODE_ENI_CONFIG_KIND,
  type NodeEniConfigFields,
  type NodeEniConfigSpec,
} from './node-eni-config-fields.ts';
import { checkNodeEniConfig } from './node-eni-config-rules.ts';

/**
 * The known fields of a NodeENIConfig (`nec`). Each node has one, with the node's name. Fields have their API names.
 */
export type NodeEniConfig = NodeEniConfigFields & {
  /** The whole object as it was read, with its unknown fields, to be written back. */
  readonly object: Readonly<Record<string, unknown>>;
  /** The settings from annotations, as far as they can be accepted without regard to what is in use. */
  readonly settings: NodeSettings;
  /** Faults of the annotations that were not accepted; they are no reason to refuse the object. */
  readonly annotationFaults: readonly Fault[];
};

/**
 * Decodes a NodeENIConfig. Unknown fields are preserved and are not a fault: another release may have written them.
 *
 * Reports every fault of shape, and also duplicates, addresses outside their subnet and incomplete families. A
 * malformed annotation is ignored and reported separately, in `annotationFaults`.
 */
export const nodeEniConfig: Decoder<NodeEniConfig> = (value, path, faults) => {
  const decoded = record(NODE_ENI_CONFIG, 'ignore')(value, path, faults);
  if (decoded === undefined || !isRecord(value)) return undefined;
  checkNodeEniConfig(decoded, faults);
  const { settings, faults: annotationFaults } = readNodeSettings(annotationsOf(value));
  return { ...decoded, object: value, settings, annotationFaults };
};

/** Returns the annotations of an object of unknown shape, unchecked. */
export function annotationsOf(object: Readonly<Record<string, unknown>>): unknown {
  const metadata = object['metadata'];
  return recordOf(metadata)['annotations'];
}

/** Lists unknown fields as paths. Fields of another release are harmless; a user's may be spelling mistakes. */
export function unknownFields(config: NodeEniConfig): readonly string[] {
  return unknownFieldsOf(config.object, NODE_ENI_CONFIG_KIND.fields);
}

/** The fields of the spec that the agent owns. It always writes them together. */
type AgentOwnedSpec = Required<Pick<NodeEniConfigSpec, 'desiredRouteENIIP' | 'releasableIPs' | 'observedSupplyEpoch'>>;

/** Returns the whole object with the agent's fields changed and everything else unchanged. */
export function withAgentSpec(config: NodeEniConfig, agentSpec: AgentOwnedSpec): Readonly<Record<string, unknown>> {
  const spec = config.object['spec'];
  return { ...config.object, spec: { ...recordOf(spec), ...agentSpec } };
}

const HEAD = ['apiVersion', 'kind', 'metadata'];

/** Lists the fields of a resource that are not in its table, as paths. */
function unknownFieldsOf(object: Readonly<Record<string, unknown>>, fields: FieldTable): readonly string[] {
  return walk(object, fields, '', HEAD);
}

function walk(value: unknown, fields: FieldTable, prefix: string, allowed: readonly string[]): readonly string[] {
  if (!isRecord(value)) return [];
  const isKnown = (key: string) => Object.hasOwn(fields, key) || allowed.includes(key);
  const unknown = Object.keys(value).filter((key) => !isKnown(key));
  return [
    ...unknown.map((key) => `${prefix}${key}`),
    ...Object.entries(fields).flatMap(([key, field]) => {
      const inner = field.value.fields;
      return inner === undefined ? [] : walkValue(value[key], inner, `${prefix}${key}`);
    }),
  ];
}

function walkValue(value: unknown, fields: FieldTable, path: string): readonly string[] {
  if (!Array.isArray(value)) return walk(value, fields, `${path}.`, []);
  return value.flatMap((item: unknown, index) => walk(item, fields, `${path}[${index}].`, []));
}
