import { API_GROUP } from '../../crd/names.ts';
import { describeValue } from '../../runtime/decode.ts';
import { type Notice, remark } from '../balancers/notice.ts';
import type { IngressHead } from './read-ingress.ts';

/**
 * What the ingress controller does about an Ingress.
 * - `serve`: it has a load balancer of ours.
 * - `release`: it had one, and shall have none: it is being deleted, or another controller serves it.
 * - `ignore`: it is not ours. Nothing is done about it, but for an event with the notice; the targets of a load balancer that it
 *   still has follow its backends.
 */
type IngressDecision = { readonly role: 'serve' | 'release' | 'ignore'; readonly notice?: Notice };

/** What says whose an Ingress is. */
type ClassFacts = {
  /** `spec.controller` of an IngressClass; undefined: there is no such class. */
  readonly controllerOf: (className: string) => string | undefined;
  /** Whether Ingresses without a class are served (`--ingress-without-class`). */
  readonly servesWithoutClass: boolean;
};

/** `spec.controller` of the classes that are served. */
export const INGRESS_CONTROLLER = `${API_GROUP}/clb`;

/** The old annotation of the class; the product's is `qcloud`. */
export const INGRESS_CLASS_ANNOTATION = 'kubernetes.io/ingress.class';

const CLASS = 'qcloud';

/**
 * Decides what becomes of an Ingress. One that was ours keeps its load balancer while its class is missing or the flag is
 * off, until it is deleted: both may be a mistake. One that names another class has it released.
 */
export function decideIngress(head: IngressHead, facts: ClassFacts): IngressDecision {
  const { owner, notice } = ownerOf(head, facts);
  const { isLeaving, hasFinalizer } = head;
  if (owner === 'ours' && !isLeaving) return { role: 'serve' };
  if (hasFinalizer && (isLeaving || owner === 'other')) return { role: 'release' };
  return { role: 'ignore', ...(notice === undefined || isLeaving ? {} : { notice }) };
}

type Ownership = { readonly owner: 'ours' | 'other' | 'unknown'; readonly notice?: Notice };

/** The annotation has precedence, as with every controller that obeys it. */
function ownerOf({ annotations, className }: IngressHead, facts: ClassFacts): Ownership {
  const annotated = annotations[INGRESS_CLASS_ANNOTATION];
  if (annotated !== undefined && annotated !== '') return { owner: annotated === CLASS ? 'ours' : 'other' };
  if (className === undefined) return { owner: facts.servesWithoutClass ? 'ours' : 'unknown' };
  const controller = facts.controllerOf(className);
  if (controller !== undefined) return { owner: controller === INGRESS_CONTROLLER ? 'ours' : 'other' };
  const message = `spec.ingressClassName ${describeValue(className)}: there is no such IngressClass, and the Ingress is not served; make one with the controller ${INGRESS_CONTROLLER}, or name another`;
  return { owner: 'unknown', notice: remark('IngressRefused', message) };
}
