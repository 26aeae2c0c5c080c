import { boolean, type Decoder, isRecord, list, optional, record, required } from '../runtime/decode.ts';

/** Decodes labels or annotations. */
export const textsByName: Decoder<Readonly<Record<string, string>>> = (value, path, faults) => {
  // Every value was checked to be a text.
  if (isRecord(value) && Object.values(value).every((one) => typeof one === 'string')) {
    return value as Record<string, string>;
  }
  faults.add(path, 'texts by name', value);
  return undefined;
};

/** Quantities are not parsed: the webhook does no arithmetic with them. */
const QUANTITIES: Decoder<Readonly<Record<string, unknown>>> = (value, path, faults) => {
  if (isRecord(value)) return value;
  faults.add(path, 'quantities by resource', value);
  return undefined;
};

const RESOURCES = record({ limits: optional(QUANTITIES), requests: optional(QUANTITIES) }, 'ignore');
const CONTAINER = record({ resources: optional(RESOURCES) }, 'ignore');

/** Decodes the fields of a Pod that the webhook reads; all others are ignored. */
export const admittedPod = record(
  {
    metadata: required(record({ labels: optional(textsByName), annotations: optional(textsByName) }, 'ignore')),
    spec: required(
      record(
        {
          hostNetwork: optional(boolean),
          containers: required(list(CONTAINER)),
          initContainers: optional(list(CONTAINER)),
        },
        'ignore',
      ),
    ),
  },
  'ignore',
);

/** The fields of a Pod that the webhook reads. */
export type AdmittedPod = NonNullable<ReturnType<typeof admittedPod>>;

/** The fields of a container that the webhook reads. */
export type AdmittedContainer = NonNullable<ReturnType<typeof CONTAINER>>;
