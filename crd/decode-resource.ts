import { type Decoder, isRecord, oneOf, optional, type RecordOf, record, required, text } from '../runtime/decode.ts';
import { objectName } from './common-values.ts';
import type { FieldTable } from './field.ts';
import { groupVersionOf, type ResourceKind } from './resource-kind.ts';

const TEXTS: Decoder<Readonly<Record<string, string>>> = (value, path, faults) => {
  // Every value was checked to be a text.
  if (isRecord(value) && Object.values(value).every((one) => typeof one === 'string'))
    return value as Record<string, string>;
  faults.add(path, 'texts by name', value);
  return undefined;
};

const METADATA = {
  name: required(objectName.decoder),
  namespace: optional(objectName.decoder),
  uid: optional(text()),
  resourceVersion: optional(text()),
  deletionTimestamp: optional(text()),
  labels: optional(TEXTS),
  annotations: optional(TEXTS),
};

/** The metadata fields that are used of every resource. */
type ResourceMetadata = RecordOf<typeof METADATA>;

/** A decoded resource: its known fields, and the whole object as it was read, to be written back. */
export type Resource<F extends FieldTable> = RecordOf<F> & {
  readonly metadata: ResourceMetadata;
  readonly object: Readonly<Record<string, unknown>>;
};

/** Makes the decoder of a kind. Unknown fields are preserved in `object` and are not a fault. */
export function resourceOf<F extends FieldTable>(kind: ResourceKind<F>): Decoder<Resource<F>> {
  const decodeFields = record(kind.fields, 'ignore');
  const { group, version } = groupVersionOf(kind);
  const decodeHead = record(
    {
      apiVersion: required(oneOf([`${group}/${version}`])),
      kind: required(oneOf([kind.kind])),
      metadata: required(record(METADATA, 'ignore')),
    },
    'ignore',
  );
  return (value, path, faults) => {
    const outer = decodeHead(value, path, faults);
    const inner = isRecord(value) ? decodeFields(value, path, faults) : undefined;
    if (outer === undefined || inner === undefined || !isRecord(value)) return undefined;
    return { ...inner, metadata: outer.metadata, object: value };
  };
}
