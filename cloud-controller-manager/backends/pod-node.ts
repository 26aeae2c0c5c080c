import { ZONE_LABEL } from '../../crd/foreign-names.ts';
import { isRecord } from '../../runtime/decode.ts';
import { listOf, recordOf } from '../../runtime/json.ts';
import type { CcmNode } from '../controller/ccm-node.ts';
import { readCloudNode } from '../nodes/cloud-node.ts';
import { readRoutedNode } from '../routes/read-routed-node.ts';

/** A Node as far as the targets of its Pods depend on it. */
export type PodNode = {
  readonly zone: string;
  /** Its condition Ready is Unknown: its kubelet is not heard, and what it said of its Pods is old. */
  readonly isSilent: boolean;
  /** Blocks of its Pods of GlobalRoute. */
  readonly podCidrs: readonly string[];
  /** Whether the VPC leads to these blocks, as far as the Node says. */
  readonly hasNetwork: boolean;
  /** Absent: it is no instance of the cloud. */
  readonly instanceId?: string;
};

/** Reads a Node; accepts any shape. */
export function readPodNode(object: CcmNode): PodNode {
  const { providerId, labels, networkUnavailable } = readCloudNode(object);
  const { podCidrs } = readRoutedNode(object);
  const { status } = object;
  const conditions = listOf(recordOf(status)['conditions']);
  return {
    zone: labels[ZONE_LABEL] ?? '',
    isSilent: conditions.some(
      (one: unknown) => isRecord(one) && one['type'] === 'Ready' && one['status'] === 'Unknown',
    ),
    podCidrs,
    hasNetwork: networkUnavailable !== 'True',
    ...(providerId.kind === 'instance' ? { instanceId: providerId.instanceId } : {}),
  };
}
