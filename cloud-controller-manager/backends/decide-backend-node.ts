import type { Instance } from '../../cloud/cloud.ts';
import { isSuperNode, ZONE_LABEL } from '../../crd/foreign-names.ts';
import { NODE_BACKEND_ANNOTATION } from '../../crd/names.ts';
import type { CloudNode } from '../nodes/cloud-node.ts';
import { trustedIpOf } from '../nodes/trusted-ip.ts';

/** A Node as a backend of load balancers. */
export type BackendNode = {
  readonly name: string;
  readonly ip: string;
  /** Absent: it is bound by its address. */
  readonly instanceId?: string;
  readonly zone: string;
  readonly isReady: boolean;
  /** It goes soon: it gets no new connections, and those that it has may end. */
  readonly isLeaving: boolean;
  readonly labels: Readonly<Record<string, string>>;
};

/** What a Node is for load balancers: a backend, or not, and why. */
type NodeRole =
  | { readonly kind: 'backend'; readonly backend: BackendNode }
  | { readonly kind: 'excluded'; readonly why: string };

const EXCLUDE_LABEL = 'node.kubernetes.io/exclude-from-external-load-balancers';
const AUTOSCALER_TAINT = 'ToBeDeletedByClusterAutoscaler';
/** What Go's ParseBool reads as false. */
const FALSE = ['0', 'f', 'F', 'false', 'FALSE', 'False'];

/**
 * Decides whether a Node is a backend. Readiness and `spec.unschedulable` do not count: the health check says which Nodes
 * serve.
 * @param vpcId VPC of the load balancers; undefined while it is not known
 * @param instance as the cloud described it; undefined: that is not known, and the Node is believed
 * @see KEP-3458; an unparsable label excludes, as upstream
 */
export function decideBackendNode(
  node: CloudNode,
  vpcId: string | undefined,
  instance?: Pick<Instance, 'vpcId' | 'privateIps'>,
): NodeRole {
  const exclude = node.labels[EXCLUDE_LABEL];
  if (exclude !== undefined && !FALSE.includes(exclude)) return excluded(`label ${EXCLUDE_LABEL}`);
  const wanted = node.annotations[NODE_BACKEND_ANNOTATION];
  if (wanted !== undefined && wanted !== 'true') return excluded(`annotation ${NODE_BACKEND_ANNOTATION}`);
  const { providerId } = node;
  if (isSuperNode(node.labels)) return excluded('a super node has no node ports');
  if (providerId.kind !== 'instance' && !(providerId.kind === 'other' && providerId.id.startsWith('kn-')))
    return excluded('its providerID names no instance of this cloud');
  if (instance !== undefined && vpcId !== undefined && instance.vpcId !== vpcId)
    return excluded(`its instance is in ${instance.vpcId}`);
  const ip = trustedIpOf(node, instance);
  if (ip === undefined) return excluded('it has no IPv4 InternalIP');
  const backend: BackendNode = {
    name: node.name,
    ip,
    ...(providerId.kind === 'instance' ? { instanceId: providerId.instanceId } : {}),
    zone: node.labels[ZONE_LABEL] ?? '',
    isReady: node.isReady,
    isLeaving: node.isLeaving || node.taints.some(({ key }) => key === AUTOSCALER_TAINT),
    labels: node.labels,
  };
  return { kind: 'backend', backend };
}

function excluded(why: string): NodeRole {
  return { kind: 'excluded', why };
}
