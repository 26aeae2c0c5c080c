import type { KubeObject } from '../kube/kube-client.ts';
import { isRecord } from '../runtime/decode.ts';

/**
 * A Node as it is cached: the object without what no controller reads and what most of it is, images and volumes.
 */
export type CcmNode = KubeObject;

/** Leaves out what is not cached of a Node; accepts any shape. */
export function decodeCcmNode(object: KubeObject): CcmNode {
  const { status } = object;
  if (!isRecord(status)) return object;
  const { images: _images, volumesAttached: _attached, volumesInUse: _inUse, ...kept } = status;
  return { ...object, status: kept };
}
