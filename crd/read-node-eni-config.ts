import { type Fault, Faults, fieldOf, isRecord } from '../runtime/decode.ts';
import type { FieldTable } from './field.ts';
import { annotationsOf, type NodeEniConfig } from './node-eni-config.ts';
import { readNodeSettings } from './node-eni-config-annotations.ts';
import {
  LOAD_BALANCERS,
  NODE_ENI_CONFIG,
  type NodeEniConfigFields,
  type NodeEniConfigSpec,
  type NodeEniConfigStatus,
  SPEC,
  STATUS,
} from './node-eni-config-fields.ts';
import { checkNodeEniConfig } from './node-eni-config-rules.ts';

/** A NodeENIConfig, as far as it can be read. */
export type ReadNodeEniConfig = {
  /** Of `spec`, `status` and `loadBalancers` only what is well formed: a malformed field, or list item, is absent. */
  readonly config: NodeEniConfig;
  /** All faults except those of the annotations, which are in `config.annotationFaults`. */
  readonly faults: readonly Fault[];
  /**
   * Fields of these three with a fault, such as `status.eniInfos`. Values that are absent from such a field may
   * exist. After damage to `status.eniInfos` or `status.intents` the cloud must be described before any decision.
   */
  readonly damaged: ReadonlySet<string>;
};

/**
 * Reads an object that may have been edited by hand in any way: reports every fault and returns what is readable.
 * Undefined only when the object has no usable name.
 */
export function readNodeEniConfig(object: Readonly<Record<string, unknown>>): ReadNodeEniConfig | undefined {
  const faults = new Faults();
  const apiVersion = NODE_ENI_CONFIG.apiVersion.decoder(object['apiVersion'], 'apiVersion', faults);
  const kind = NODE_ENI_CONFIG.kind.decoder(object['kind'], 'kind', faults);
  const metadata = NODE_ENI_CONFIG.metadata.decoder(object['metadata'], 'metadata', faults);
  if (apiVersion === undefined || kind === undefined || metadata === undefined) return undefined;
  // Filled field by field from the tables that the types are derived from; both have optional fields only.
  const spec = readFields(SPEC, object['spec'], 'spec', faults) as NodeEniConfigSpec | undefined;
  const status = readFields(STATUS, object['status'], 'status', faults) as NodeEniConfigStatus | undefined;
  const read = { ...(spec === undefined ? {} : { spec }), ...(status === undefined ? {} : { status }) };
  const balancers = readFields(LOAD_BALANCERS, object['loadBalancers'], 'loadBalancers', faults);
  checkNodeEniConfig(read, faults);
  const { settings, faults: annotationFaults } = readNodeSettings(annotationsOf(object));
  const damaged = new Set(faults.list.map((fault) => fieldOf(fault.path)));
  const config = {
    apiVersion,
    kind,
    metadata,
    ...withoutContradiction(read, damaged),
    ...(balancers === undefined ? {} : { loadBalancers: balancers as NodeEniConfigFields['loadBalancers'] & {} }),
    object,
    settings,
    annotationFaults,
  };
  return { config, faults: faults.list, damaged };
}

function readFields(fields: FieldTable, value: unknown, path: string, faults: Faults): object | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value)) {
    faults.add(path, 'an object', value);
    return undefined;
  }
  const read = Object.entries(fields).flatMap(([name, field]) => {
    const raw = value[name];
    if (raw === undefined || raw === null) return [];
    const decoded = field.decoder(raw, `${path}.${name}`, faults);
    return decoded === undefined ? [] : [[name, decoded] as const];
  });
  return Object.fromEntries(read);
}

/** Drops a pair of warm targets that contradict each other. */
function withoutContradiction<T extends { readonly spec?: NodeEniConfigSpec }>(
  read: T,
  damaged: ReadonlySet<string>,
): T {
  if (read.spec === undefined || !damaged.has('spec.routeENIIPMaxWarmTarget')) return read;
  const { routeENIIPMinWarmTarget: _min, routeENIIPMaxWarmTarget: _max, ...spec } = read.spec;
  return { ...read, spec };
}
