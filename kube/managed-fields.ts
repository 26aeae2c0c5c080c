import { isRecord } from '../runtime/decode.ts';
import type { KubeObject } from './kube-client.ts';

/**
 * Removes `metadata.managedFields` from an object for the cache. They are half of an object, and the API server keeps
 * them when a write omits them. Returns the same object when it has none.
 */
export function withoutManagedFields(object: KubeObject): KubeObject {
  if (!isRecord(object.metadata) || !('managedFields' in object.metadata)) return object;
  const { managedFields: _, ...metadata } = object.metadata as KubeObject['metadata'] & { managedFields?: unknown };
  return { ...object, metadata };
}
