import { boolean, integer, list, optional, record, required, text } from '../runtime/decode.ts';
import { textsByName } from './admitted-pod.ts';

const SLEEP = record({ seconds: required(integer(0, Number.MAX_SAFE_INTEGER)) }, 'ignore');
const HOOK = record({ sleep: optional(SLEEP) }, 'ignore');
const CONTAINER = record({ lifecycle: optional(record({ preStop: optional(HOOK) }, 'ignore')) }, 'ignore');
const GATE = record({ conditionType: required(text()) }, 'ignore');

/** Decodes the fields of a Pod that matter to load balancers; all others are ignored. */
export const backendPod = record(
  {
    metadata: required(record({ labels: optional(textsByName), annotations: optional(textsByName) }, 'ignore')),
    spec: required(
      record(
        {
          hostNetwork: optional(boolean),
          readinessGates: optional(list(GATE)),
          terminationGracePeriodSeconds: optional(integer(0, Number.MAX_SAFE_INTEGER)),
          containers: required(list(CONTAINER)),
        },
        'ignore',
      ),
    ),
  },
  'ignore',
);

/** The fields of a Pod that matter to load balancers. */
export type BackendPod = NonNullable<ReturnType<typeof backendPod>>;
