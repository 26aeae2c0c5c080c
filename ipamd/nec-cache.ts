import { type NodeEniConfig, nodeEniConfig, unknownFields } from '../crd/node-eni-config.ts';
import type { KubeObject } from '../kube/kube-client.ts';
import { withoutManagedFields } from '../kube/managed-fields.ts';
import { type Fault, Faults, isRecord } from '../runtime/decode.ts';
import type { NecEntry as NodeNecEntry } from './node/nec-entry.ts';

/**
 * One NodeENIConfig as ipamd keeps it. Its object is without `metadata.managedFields`, which no write needs. In `decoded`
 * fields of the spec that people got wrong are absent, and `faults` names them; wrong annotations are in its own
 * `annotationFaults`. It is undefined when the head or the status is wrong: then nothing is known of the node's ENIs.
 */
export type NecEntry = NodeNecEntry & { readonly name: string };

/**
 * Decodes a NodeENIConfig so that one wrong field of a person does not take the rest away. Pure.
 * An object without fields that we do not know shares its parts with what was decoded: one copy in memory, not two.
 */
export function decodeNec(read: KubeObject): NecEntry {
  const object = withoutManagedFields(read);
  const { name } = object.metadata;
  const first = decode(object);
  if (first.decoded !== undefined && first.faults.length === 0) {
    const lean = sharingParts(object, first.decoded);
    return { name, object: lean, decoded: { ...first.decoded, object: lean }, faults: [] };
  }
  // What is left out may be all that was wrong; if not, the status itself is.
  const second = decode(withoutWrongFields(object, first.faults));
  const isWhole = second.decoded !== undefined && second.faults.length === 0;
  const decoded = isWhole && second.decoded !== undefined ? { ...second.decoded, object } : undefined;
  return { name, object, decoded, faults: first.faults };
}

type Decoded = { readonly decoded: NodeEniConfig | undefined; readonly faults: readonly Fault[] };

function decode(object: KubeObject): Decoded {
  const faults = new Faults();
  const decoded = nodeEniConfig(object, '', faults);
  return { decoded, faults: faults.list };
}

function sharingParts(object: KubeObject, decoded: NodeEniConfig): KubeObject {
  if (unknownFields(decoded).length > 0) return object;
  return {
    ...object,
    ...(decoded.spec === undefined ? {} : { spec: decoded.spec }),
    ...(decoded.status === undefined ? {} : { status: decoded.status }),
  };
}

const SPEC_FIELD = /^spec\.([^.[]+)/;

/** Leaves out the fields of the spec that faults name; all of them are optional. */
function withoutWrongFields(object: KubeObject, faults: readonly Fault[]): KubeObject {
  if (!isRecord(object['spec'])) return { ...object, spec: {} };
  const wrong = new Set(faults.flatMap((fault) => SPEC_FIELD.exec(fault.path)?.[1] ?? []));
  const spec = Object.fromEntries(Object.entries(object['spec']).filter(([key]) => !wrong.has(key)));
  return { ...object, spec };
}
