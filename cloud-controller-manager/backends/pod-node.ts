import type { Instance } from '../../cloud/cloud.ts';
import { ZONE_LABEL } from '../../crd/foreign-names.ts';
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
  /** The addresses of the instance; absent: they are not known. */
  readonly instanceIps?: readonly string[];
};

/**
 * Reads a Node; accepts any shape.
 * @param instance as the cloud described it; undefined: that is not known, and the Node is believed
 * @param counts whether it is the one of the Nodes with its instance that counts
 */
export function readPodNode(object: CcmNode, instance?: Pick<Instance, 'privateIps'>, counts = true): PodNode {
  const { providerId, labels, networkUnavailable, isSilent } = readCloudNode(object);
  const { podCidrs } = readRoutedNode(object);
  return {
    zone: labels[ZONE_LABEL] ?? '',
    isSilent,
    podCidrs,
    hasNetwork: networkUnavailable !== 'True',
    ...(providerId.kind === 'instance' && counts ? { instanceId: providerId.instanceId } : {}),
    ...(instance === undefined ? {} : { instanceIps: instance.privateIps }),
  };
}
