import { type Fault, Faults, isRecord } from '../runtime/decode.ts';
import type { FieldTable } from './field.ts';
import { annotationsOf, type NodeEniConfig } from './node-eni-config.ts';
import { readNodeSettings } from './node-eni-config-annotations.ts';
import {
  NODE_ENI_CONFIG,
  type NodeEniConfigSpec,
  type NodeEniConfigStatus,
  SPEC,
  STATUS,
} from './node-eni-config-fields.ts';
import { checkNodeEniConfig } from './node-eni-config-rules.ts';

/** A NodeENIConfig as far as it can be read. */
export type ReadNodeEniConfig = {
  /** Of `spec` and `status` only what is well formed: a malformed field, or item of a list, is absent. */
  readonly config: NodeEniConfig;
  /** Everything that is wrong, the annotations left out: they are in `config.annotationFaults`. */
  readonly faults: readonly Fault[];
  /**
   * Fields of spec and status with a fault: `status.eniInfos`. What is absent from one of these may have been there: ENIs
   * of a damaged `status.eniInfos` or `status.intents` must be described before anything is decided on them.
   */
  readonly damaged: ReadonlySet<string>;
};

/**
 * Reads an object that may have been edited into nonsense: names every fault, and gives what can be read all the same.
 * Undefined only when it has no usable name, and so cannot be one. Pure.
 */
export function readNodeEniConfig(object: Readonly<Record<string, unknown>>): ReadNodeEniConfig | undefined {
  const faults = new Faults();
  const apiVersion = NODE_ENI_CONFIG.apiVersion.decoder(object['apiVersion'], 'apiVersion', faults);
  const kind = NODE_ENI_CONFIG.kind.decoder(object['kind'], 'kind', faults);
  const metadata = NODE_ENI_CONFIG.metadata.decoder(object['metadata'], 'metadata', faults);
  if (apiVersion === undefined || kind === undefined || metadata === undefined) return undefined;
  // Filled field by field from the tables that the types are made of; both have optional fields only.
  const spec = readFields(SPEC, object['spec'], 'spec', faults) as NodeEniConfigSpec | undefined;
  const status = readFields(STATUS, object['status'], 'status', faults) as NodeEniConfigStatus | undefined;
  const read = { ...(spec === undefined ? {} : { spec }), ...(status === undefined ? {} : { status }) };
  checkNodeEniConfig(read, faults);
  const { settings, faults: annotationFaults } = readNodeSettings(annotationsOf(object));
  const damaged = new Set(faults.list.map((fault) => fieldOf(fault.path)));
  const config = { apiVersion, kind, metadata, ...trusted(read, damaged), object, settings, annotationFaults };
  return { config, faults: faults.list, damaged };
}

function readFields(fields: FieldTable, value: unknown, path: string, faults: Faults): object | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value)) {
    faults.add(path, 'an object', value);
    return undefined;
  }
  const read = Object.entries(fields).flatMap(([name, field]) => {
    const given = value[name];
    if (given === undefined || given === null) return [];
    const decoded = field.decoder(given, `${path}.${name}`, faults);
    return decoded === undefined ? [] : [[name, decoded] as const];
  });
  return Object.fromEntries(read);
}

/** `status.eniInfos[3].mac` is of `status.eniInfos`; `spec` alone, which is no object, stays. */
function fieldOf(path: string): string {
  return /^[^.[]+(\.[^.[]+)?/.exec(path)?.[0] ?? path;
}

/** A pair of warm targets that contradict each other is no target at all. */
function trusted<T extends { readonly spec?: NodeEniConfigSpec }>(read: T, damaged: ReadonlySet<string>): T {
  if (read.spec === undefined || !damaged.has('spec.routeENIIPMaxWarmTarget')) return read;
  const { routeENIIPMinWarmTarget: _min, routeENIIPMaxWarmTarget: _max, ...spec } = read.spec;
  return { ...read, spec };
}
