import { part } from './field.ts';
import { choice, instant, matchingText, objectOf, sentence, wholeNumber } from './value.ts';

/** An id of the cloud or of this project, such as eni-6cjx2o4a. */
export const id = matchingText(/^[a-zA-Z0-9_.:-]{1,253}$/, 'an id of letters, digits and . : _ -', 253);

/** The name of a Kubernetes object. */
export const objectName = matchingText(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, 'the name of an object', 253);

/** A duration in Go's notation, such as 1h30m; 0s means that it never ends. */
export const duration = matchingText(/^([0-9]+(ms|s|m|h))+$/, 'a duration such as 30m or 1h30m', 32);

/** Whether an address or EIP is released with its Pod, or retained for the next Pod of the same name. */
export const deletePolicy = choice(['Immediate', 'Never']);

/** How a Pod is attached to the VPC. */
export const eniMode = choice(['route-eni', 'direct-eni']);

/** An error answer of the cloud. */
export const cloudError = objectOf({
  code: part.required(sentence(128), "The cloud's error code, such as ResourceInsufficient.Subnet."),
  message: part.required(sentence(1024), "The cloud's own words."),
  requestID: part.optional(sentence(64), 'What to name when asking the cloud for help.'),
  at: part.required(instant, 'When it was answered.'),
});

/** A Pod by name and uid. The uid tells a Pod from earlier and later ones of the same name. */
export const podReference = objectOf({
  namespace: part.required(objectName, 'Its namespace.'),
  name: part.required(objectName, 'Its name.'),
  uid: part.optional(id, 'Its uid; absent while no Pod holds a kept address.'),
});

/**
 * The claim that an address or an exclusive ENI belongs to, beyond the lifetime of one Pod. `uid` is the only Pod that
 * may use it now; without it no Pod may. Only ipamd changes it, in a guarded write.
 */
export const claimMark = objectOf({
  namespace: part.required(objectName, 'Namespace of the VpcIPClaim, and of its Pod.'),
  name: part.required(objectName, 'Name of both.'),
  uid: part.optional(id, 'The Pod that may use it now; absent while none may.'),
});

/** A condition in the usual form of Kubernetes. */
export const condition = objectOf({
  type: part.required(matchingText(/^[A-Za-z][A-Za-z0-9]*$/, 'a condition such as Ready', 64), 'What it is about.'),
  status: part.required(choice(['True', 'False', 'Unknown']), 'Whether it holds.'),
  reason: part.required(
    matchingText(/^[A-Za-z][A-Za-z0-9_]*$/, 'a word such as SubnetExhausted', 128),
    'Why, in a word.',
  ),
  message: part.optional(sentence(2048), "Why, for people, with the cloud's own error text."),
  lastTransitionTime: part.required(instant, 'When the status last changed.'),
  observedGeneration: part.optional(
    wholeNumber(0, Number.MAX_SAFE_INTEGER),
    'The generation of the object that was judged.',
  ),
});

/** Bounds of a list of conditions: one of each type. */
export const CONDITIONS = { maxItems: 16, keys: ['type'] } as const;
