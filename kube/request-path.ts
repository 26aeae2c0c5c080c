import type { ObjectRef, ResourceType } from './kube-client.ts';
import { KubeError } from './kube-error.ts';
import { apiVersionOf } from './resource-types.ts';

/** Longest version of a list or object, or token of a page, that goes into a path; those of etcd have 20 and some hundred characters. */
export const MAX_TOKEN_CHARS = 4_096;

/** Builds the path of a collection: `/api/v1/namespaces/default/pods`. Absent namespace: all namespaces. */
export function collectionPath(type: ResourceType, namespace: string | undefined): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${apiVersionOf(type)}`;
  const within = type.isNamespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${within}/${type.plural}`;
}

/**
 * Builds the path of one object.
 * @throws KubeError INVALID without a name or a required namespace: the path would then name the collection
 */
export function objectPath(type: ResourceType, ref: ObjectRef): string {
  if (ref.name === '' || (type.isNamespaced && (ref.namespace ?? '') === '')) {
    const text = `${type.kind} needs ${ref.name === '' ? 'a name' : 'a namespace'}`;
    throw new KubeError({ code: 'INVALID', request: `${type.plural}/${ref.name}`, text });
  }
  return `${collectionPath(type, ref.namespace)}/${encodeURIComponent(ref.name)}`;
}

/** Renders the name of a request in errors and logs: `PUT nodeeniconfigs/n1`. */
export function requestLabel(verb: string, type: ResourceType, ref?: Partial<ObjectRef>): string {
  const parts = [type.plural, ref?.namespace, ref?.name].filter((part) => part !== undefined && part !== '');
  return `${verb} ${parts.join('/')}`;
}
