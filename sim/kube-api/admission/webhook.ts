import { isObject, type JsonObject, type KubeObject } from '../object.ts';

/** A webhook that may change what is created, as its configuration has it. */
export type MutatingWebhook = {
  readonly name: string;
  /** How many seconds it may take. */
  readonly timeoutSeconds: number;
  readonly isFailureIgnored: boolean;
  /** Whether it is asked again when a later one changed the object. */
  readonly isReinvoked: boolean;
  readonly client: JsonObject;
  readonly rules: readonly JsonObject[];
  readonly namespaceSelector: JsonObject;
  readonly objectSelector: JsonObject;
};

/** Group and plural of the resource with the configurations. */
export const MUTATING_CONFIGURATIONS = {
  group: 'admissionregistration.k8s.io',
  plural: 'mutatingwebhookconfigurations',
} as const;

/** Returns the webhooks of a configuration, in the order in which they are asked. */
export function webhooksOf(configuration: KubeObject): readonly MutatingWebhook[] {
  // What is stored was checked and has its defaults.
  return objectsIn(configuration['webhooks']).map((hook) => ({
    name: String(hook['name']),
    timeoutSeconds: Number(hook['timeoutSeconds']),
    isFailureIgnored: hook['failurePolicy'] === 'Ignore',
    isReinvoked: hook['reinvocationPolicy'] === 'IfNeeded',
    client: partOf(hook, 'clientConfig'),
    rules: objectsIn(hook['rules']),
    namespaceSelector: partOf(hook, 'namespaceSelector'),
    objectSelector: partOf(hook, 'objectSelector'),
  }));
}

/** Returns the objects of a list; what is no list, or no object in it, is left out. */
export function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Returns an object within an object; an empty one when it is absent. */
export function partOf(object: JsonObject, field: string): JsonObject {
  const value = object[field];
  return isObject(value) ? value : {};
}
