import { isIP } from 'node:net';
import { type NodeEniConfig, nodeEniConfig, unknownFields } from '../../crd/node-eni-config.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { withoutManagedFields } from '../../kube/managed-fields.ts';
import { type Fault, Faults, isRecord } from '../../runtime/decode.ts';
import { listOf, recordOf } from '../../runtime/json.ts';

/** One NodeENIConfig as ipamd caches and reconciles it. */
export type NecEntry = {
  readonly name: string;
  /** Written back with ipamd's fields changed. Without `metadata.managedFields`, which no write needs. */
  readonly object: KubeObject;
  /**
   * Without the invalid fields of the spec, which `faults` names; invalid annotations are in its own `annotationFaults`.
   * Undefined when metadata or status are invalid: then nothing is known of the node's ENIs.
   */
  readonly decoded: NodeEniConfig | undefined;
  /** Empty for an object that passes every check. */
  readonly faults: readonly Fault[];
};

/**
 * Decodes a NodeENIConfig so that one invalid field of a person does not invalidate the others.
 * An object without unknown fields shares its parts with the decoded form: one copy in memory, not two.
 */
export function decodeNec(read: KubeObject): NecEntry {
  const object = withoutManagedFields(read);
  const { name } = object.metadata;
  const first = decode(object);
  if (first.decoded !== undefined && first.faults.length === 0) {
    const lean = withSharedFields(object, first.decoded);
    return { name, object: lean, decoded: { ...first.decoded, object: lean }, faults: [] };
  }
  // Without the invalid fields the rest may be valid; if it is not, the status itself is invalid.
  const second = decode(withoutInvalidFields(object, first.faults));
  const isValid = second.decoded !== undefined && second.faults.length === 0;
  const decoded = isValid && second.decoded !== undefined ? { ...second.decoded, object } : undefined;
  return { name, object, decoded, faults: first.faults };
}

type Decoded = { readonly decoded: NodeEniConfig | undefined; readonly faults: readonly Fault[] };

function decode(object: KubeObject): Decoded {
  const faults = new Faults();
  const decoded = nodeEniConfig(object, '', faults);
  return { decoded, faults: faults.list };
}

function withSharedFields(object: KubeObject, decoded: NodeEniConfig): KubeObject {
  if (unknownFields(decoded).length > 0) return object;
  return {
    ...object,
    ...(decoded.spec === undefined ? {} : { spec: decoded.spec }),
    ...(decoded.status === undefined ? {} : { status: decoded.status }),
  };
}

const SPEC_FIELD = /^spec\.([^.[]+)/;

/** Removes the fields of the spec that faults name; all of them are optional. */
function withoutInvalidFields(object: KubeObject, faults: readonly Fault[]): KubeObject {
  if (!isRecord(object['spec'])) return { ...object, spec: {}, ...validTargets(object, faults) };
  const invalid = new Set(faults.flatMap((fault) => SPEC_FIELD.exec(fault.path)?.[1] ?? []));
  const spec = Object.fromEntries(Object.entries(object['spec']).filter(([key]) => !invalid.has(key)));
  return { ...object, spec, ...validTargets(object, faults) };
}

/** Of a malformed list of targets every address counts that can be read. */
function validTargets(object: KubeObject, faults: readonly Fault[]): { readonly loadBalancers?: unknown } {
  if (!faults.some(({ path }) => path.startsWith('loadBalancers'))) return {};
  const balancers = object['loadBalancers'];
  const listed: unknown = recordOf(balancers)['registeredIPs'];
  const all = listOf(listed);
  return { loadBalancers: { registeredIPs: all.filter((ip) => typeof ip === 'string' && isIP(ip) !== 0) } };
}
