import type { KubeObject } from '../../kube/kube-client.ts';
import { withoutManagedFields } from '../../kube/managed-fields.ts';
import { isRecord } from '../../runtime/decode.ts';

/**
 * A Node as it is cached: the object without what no controller reads, images and volumes before all, which are most of
 * it.
 */
export type CcmNode = KubeObject;

const UNREAD: ReadonlySet<string> = new Set([
  'images',
  'volumesAttached',
  'volumesInUse',
  'nodeInfo',
  'daemonEndpoints',
  'allocatable',
  'runtimeHandlers',
  'features',
  'config',
]);

/** Leaves out what is not cached of a Node; accepts any shape. */
export function decodeCcmNode(object: KubeObject): CcmNode {
  const { status } = object;
  const kept = withoutManagedFields(object);
  if (!isRecord(status)) return kept;
  const read: Record<string, unknown> = {};
  for (const name of Object.keys(status)) if (!UNREAD.has(name)) read[name] = status[name];
  return { ...kept, status: read };
}
