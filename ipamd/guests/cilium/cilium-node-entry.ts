import { type CiliumNodeIpam, readCiliumNode } from '../../../crd/cilium-node.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import type { Fault } from '../../../runtime/decode.ts';

/** What ipamd caches of a CiliumNode. */
export type CiliumNodeEntry = {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Its deletion was requested. */
  readonly isLeaving: boolean;
  readonly ipam: CiliumNodeIpam;
  /** What is left out of `ipam`. */
  readonly faults: readonly Fault[];
};

/** Name of the index of CiliumNodes by the addresses in their pools. */
export const BY_POOL_IP = 'poolIp';

/** Indexes of the informer of CiliumNodes. */
export const CILIUM_NODE_INDEXES = {
  [BY_POOL_IP]: ({ ipam }: CiliumNodeEntry): readonly string[] => [...ipam.pool.keys()],
};

/** Decodes a CiliumNode; accepts any shape. */
export function decodeCiliumNode(object: KubeObject): CiliumNodeEntry {
  const { name, uid = '', resourceVersion = '', deletionTimestamp } = object.metadata;
  const { ipam, faults } = readCiliumNode(object);
  return { name, uid, resourceVersion, isLeaving: deletionTimestamp !== undefined, ipam, faults: faults.list };
}
