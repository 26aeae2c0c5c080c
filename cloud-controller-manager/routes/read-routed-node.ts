import type { Instance } from '../../cloud/cloud.ts';
import { DIRECT_ENI_RESOURCE, ENI_IP_RESOURCE } from '../../crd/names.ts';
import type { RoutedNode } from '../../pod-routes/routed-node.ts';
import { isRecord } from '../../runtime/decode.ts';
import { listOf, recordOf, textsOf } from '../../runtime/json.ts';
import type { CcmNode } from '../controller/ccm-node.ts';
import { readCloudNode } from '../nodes/cloud-node.ts';
import { trustedIpOf } from '../nodes/trusted-ip.ts';

/**
 * Reads what the routes of a Node depend on; accepts any shape.
 * @param instance as the cloud described it; undefined: that is not known, and the Node is believed
 */
export function readRoutedNode(object: CcmNode, instance?: Pick<Instance, 'privateIps'>): RoutedNode {
  const node = readCloudNode(object);
  const { name, uid, resourceVersion, createdAt, isReady, networkUnavailable } = node;
  const internalIp = trustedIpOf(node, instance);
  return {
    name,
    uid,
    resourceVersion,
    createdAt,
    isReady,
    podCidrs: podCidrsOf(object['spec']),
    ...(internalIp === undefined ? {} : { internalIp }),
    ...(networkUnavailable === undefined ? {} : { networkCondition: { status: networkUnavailable } }),
    hasEniPods: hasEniPods(object['status']),
  };
}

function podCidrsOf(spec: unknown): readonly string[] {
  const { podCIDR, podCIDRs } = recordOf(spec);
  return [...new Set(textsOf([podCIDR, ...listOf(podCIDRs)]).filter((one) => one !== ''))];
}

/** The agent of the node offers addresses of the VPC to Pods. */
function hasEniPods(status: unknown): boolean {
  const capacity = recordOf(status)['capacity'];
  return isRecord(capacity) && [ENI_IP_RESOURCE, DIRECT_ENI_RESOURCE].some((name) => capacity[name] !== undefined);
}
