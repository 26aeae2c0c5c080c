import {
  type Decoder,
  Faults,
  isRecord,
  oneOf,
  optional,
  record,
  renderFault,
  required,
  text,
} from '../runtime/decode.ts';
import { recordOf } from '../runtime/json.ts';
import type { Admission } from './admission.ts';

/**
 * Decides on the Pod of a review, in its namespace: the Pod object may lack that before it is created. Undefined when the
 * Pod has faults and cannot be read.
 */
export type DecideReview = (object: unknown, namespace: string, faults: Faults) => Admission | undefined;

/** The outcome of one review, for metrics. */
export type ReviewOutcome = 'patched' | 'unchanged' | 'not-understood';

/** The answer to a review: its body, and what logs and metrics report about it. */
type ReviewAnswer = {
  readonly kind: 'answer';
  readonly body: Readonly<Record<string, unknown>>;
  readonly outcome: ReviewOutcome;
  /** Namespace and name of the Pod, as far as it has a name yet: `shop/db-0`, `shop/web-5d4f-`. */
  readonly subject: string;
  readonly warnings: readonly string[];
};

/** An answer; or the reason why none can be given: the body is not a review, so its uid is unknown. */
export type ReviewReply = ReviewAnswer | { readonly kind: 'no-review'; readonly why: string };

/**
 * Answers an AdmissionReview. The Pod is always admitted: a request that cannot be understood leaves it unchanged and
 * adds a warning. Never throws, whatever was sent.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/ AdmissionReview v1
 */
export function answerReview(sent: unknown, decide: DecideReview): ReviewReply {
  const faults = new Faults();
  const review = REVIEW(sent, '', faults);
  if (review === undefined) {
    const why = faults.list.slice(0, MAX_SHOWN_FAULTS).map(renderFault);
    return { kind: 'no-review', why: `no AdmissionReview of ${API_VERSION}: ${why.join('; ')}` };
  }
  const { uid } = review.request;
  const { admission, isUnderstood } = decideRequest(review.request, decide);
  const warnings = boundWarnings(admission.warnings);
  const isPatched = admission.patch.length > 0;
  const response = {
    uid,
    allowed: true,
    ...(isPatched && {
      patchType: 'JSONPatch',
      patch: Buffer.from(JSON.stringify(admission.patch)).toString('base64'),
    }),
    ...(warnings.length > 0 && { warnings }),
  };
  const outcome = isUnderstood ? (isPatched ? 'patched' : 'unchanged') : 'not-understood';
  const body = { apiVersion: API_VERSION, kind: KIND, response };
  return { kind: 'answer', body, outcome, subject: subjectOf(review.request), warnings };
}

const MAX_SHOWN_FAULTS = 10;

const API_VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';

const anything: Decoder<unknown> = (value) => value;

/** Requires only what an answer needs. Faults in other fields lead to a warning. */
const REVIEW = record(
  {
    apiVersion: required(oneOf([API_VERSION])),
    kind: required(oneOf([KIND])),
    request: required(
      record(
        {
          uid: required(text(/^.{1,256}$/s, 'a text of 1 to 256 characters')),
          operation: optional(anything),
          resource: optional(anything),
          subResource: optional(anything),
          namespace: optional(anything),
          object: optional(anything),
        },
        'ignore',
      ),
    ),
  },
  'ignore',
);

type Request = NonNullable<ReturnType<typeof REVIEW>>['request'];

type Decided = { readonly admission: Admission; readonly isUnderstood: boolean };

function decideRequest(
  { operation, resource, subResource, namespace, object }: Request,
  decide: DecideReview,
): Decided {
  if (operation !== 'CREATE' || !isPods(resource) || (subResource ?? '') !== '') {
    return leaveUnchanged('expected the creation of a Pod: look at the rules of the MutatingWebhookConfiguration');
  }
  if (typeof namespace !== 'string') return leaveUnchanged('request.namespace: expected the namespace of the Pod');
  const faults = new Faults();
  const admission = decide(object, namespace, faults);
  const [fault] = faults.list;
  if (admission === undefined || fault !== undefined) {
    return leaveUnchanged(`${fault?.path}: expected ${fault?.expected}, got ${fault?.got}`);
  }
  return { admission, isUnderstood: true };
}

function subjectOf({ namespace, object }: Request): string {
  const metadata = recordOf(recordOf(object)['metadata']);
  const named = [namespace, metadata['name'] ?? metadata['generateName']];
  // The API server has not validated the name yet: it may be of any type and length.
  return named.map((one) => (typeof one === 'string' ? one.slice(0, MAX_NAME_CHARACTERS) : '?')).join('/');
}

const MAX_NAME_CHARACTERS = 253;

function isPods(resource: unknown): boolean {
  return (
    isRecord(resource) && resource['group'] === '' && resource['version'] === 'v1' && resource['resource'] === 'pods'
  );
}

function leaveUnchanged(why: string): Decided {
  return { admission: { patch: [], warnings: [`not changed: ${why}`] }, isUnderstood: false };
}

/** Most characters of one warning, and most warnings. An API server may cut or drop what exceeds these. */
const MAX_WARNING_CHARACTERS = 256;
const MAX_WARNINGS = 12;

/**
 * Limits warnings in number and length and removes control characters. Warnings are sent in HTTP headers, where one
 * control character would invalidate all of them.
 */
function boundWarnings(warnings: readonly string[]): readonly string[] {
  return warnings.slice(0, MAX_WARNINGS).map((warning) => {
    const plain = `tke-eni-ip-webhook: ${warning}`.replaceAll(/\p{Cc}|\p{Cs}/gu, ' ');
    return plain.length <= MAX_WARNING_CHARACTERS ? plain : `${plain.slice(0, MAX_WARNING_CHARACTERS - 1)}…`;
  });
}
