import type { KubeObject } from './kube-client.ts';

/**
 * Leaves `metadata.managedFields` out of an object that is kept in memory: they are half of it, and the API server keeps
 * what a write leaves out. The very same object when it has none. Pure.
 */
export function withoutManagedFields(object: KubeObject): KubeObject {
  if (!('managedFields' in object.metadata)) return object;
  const { managedFields: _, ...metadata } = object.metadata as KubeObject['metadata'] & { managedFields?: unknown };
  return { ...object, metadata };
}
