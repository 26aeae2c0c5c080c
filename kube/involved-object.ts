import type { InvolvedObject } from './events/event-object.ts';
import type { ResourceType } from './kube-client.ts';
import { apiVersionOf } from './resource-types.ts';

/**
 * Returns the reference of an event to an object. Only with the object's uid does `kubectl describe` list the event; one of an
 * object whose uid is unknown, or '', is found by `kubectl get events`.
 */
export function involvedObject(
  type: ResourceType,
  {
    namespace,
    name,
    uid = '',
  }: { readonly name: string; readonly namespace?: string | undefined; readonly uid?: string | undefined },
): InvolvedObject {
  const ref = { ...(namespace === undefined ? {} : { namespace }), name, ...(uid === '' ? {} : { uid }) };
  return { apiVersion: apiVersionOf(type), kind: type.kind, ...ref };
}
