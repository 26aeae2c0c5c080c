import { isIPv4 } from 'node:net';
import { isSuperNode, ZONE_LABEL } from '../../crd/foreign-names.ts';
import { NODE_BACKEND_ANNOTATION } from '../../crd/names.ts';
import type { CloudNode } from '../nodes/cloud-node.ts';
import { readSeen } from '../nodes/seen-instance.ts';

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
 * @see KEP-3458; an unparsable label excludes, as upstream
 */
export function decideBackendNode(node: CloudNode, vpcId: string | undefined): NodeRole {
  const exclude = node.labels[EXCLUDE_LABEL];
  if (exclude !== undefined && !FALSE.includes(exclude)) return excluded(`label ${EXCLUDE_LABEL}`);
  const wanted = node.annotations[NODE_BACKEND_ANNOTATION];
  if (wanted !== undefined && wanted !== 'true') return excluded(`annotation ${NODE_BACKEND_ANNOTATION}`);
  const { providerId } = node;
  if (isSuperNode(node.labels)) return excluded('a super node has no node ports');
  if (providerId.kind !== 'instance' && !(providerId.kind === 'other' && providerId.id.startsWith('kn-')))
    return excluded('its providerID names no instance of this cloud');
  const seenIn = readSeen(node)?.vpcId;
  if (seenIn !== undefined && vpcId !== undefined && seenIn !== vpcId) return excluded(`its instance is in ${seenIn}`);
  const ip = node.addresses.find(({ type, address }) => type === 'InternalIP' && isIPv4(address))?.address;
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
