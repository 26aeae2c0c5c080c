import { boolean, type Decoder, isRecord, list, optional, record, required } from '../runtime/decode.ts';

const TEXTS: Decoder<Readonly<Record<string, string>>> = (value, path, faults) => {
  // Checked one by one here.
  if (isRecord(value) && Object.values(value).every((one) => typeof one === 'string')) {
    return value as Record<string, string>;
  }
  faults.add(path, 'texts by name', value);
  return undefined;
};

/** Quantities stay as they are: nothing is reckoned with them. */
const QUANTITIES: Decoder<Readonly<Record<string, unknown>>> = (value, path, faults) => {
  if (isRecord(value)) return value;
  faults.add(path, 'quantities by resource', value);
  return undefined;
};

const RESOURCES = record({ limits: optional(QUANTITIES), requests: optional(QUANTITIES) }, 'ignore');
const CONTAINER = record({ resources: optional(RESOURCES) }, 'ignore');

/** Reads what of a Pod the webhook looks at. Pure. */
export const admittedPod = record(
  {
    metadata: required(record({ labels: optional(TEXTS), annotations: optional(TEXTS) }, 'ignore')),
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

/** What of a Pod the webhook looks at. */
export type AdmittedPod = NonNullable<ReturnType<typeof admittedPod>>;

/** A container, as far as the webhook looks at it. */
export type AdmittedContainer = NonNullable<ReturnType<typeof CONTAINER>>;
