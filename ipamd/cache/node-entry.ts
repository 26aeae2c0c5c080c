import { isIPv4 } from 'node:net';
import { instanceIdOf } from '../../cloud/provider-id.ts';
import { isSuperNode, ZONE_LABEL } from '../../crd/foreign-names.ts';
import {
  DIRECT_ENI_CONDITION,
  ENI_IP_CONDITION,
  EXTENDED_RESOURCES,
  NODE_ANNOTATION,
  NODE_CILIUM_IPAM_LABEL,
  NODE_DIRECT_ENI_LABEL,
  NODE_INSTANCE_LABEL,
  NODE_STATIC_IP_LABEL,
  NODE_SUBNETS_LABEL,
} from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { listOf, recordOf, recordsOf, textsOf } from '../../runtime/json.ts';

/** What ipamd caches of a Node. A cluster has thousands, and most of each object is images and conditions. */
export type NodeEntry = {
  readonly name: string;
  /** Changes when a node of the same name registers again. */
  readonly uid: string;
  readonly resourceVersion: string;
  /** RFC 3339, as the API server writes it; compared as text. */
  readonly createdAt: string;
  /** From `spec.providerID`, else from the label. Absent: a Machine may contain it. */
  readonly instanceId?: string;
  /** Value of `spec.providerID` that names no instance of this cloud. */
  readonly foreignProviderId?: string;
  /** False for a super node, which has neither instance nor ENIs. */
  readonly isInstance: boolean;
  /** Value of the label that names the zone of a super node. */
  readonly zoneLabel?: string;
  readonly isReady: boolean;
  /** Its deletion was requested. */
  readonly isLeaving: boolean;
  readonly addresses: readonly string[];
  /** All taints as they are: a patch of one must leave the others unchanged. */
  readonly taints: readonly NodeTaint[];
  /** The condition that it has no addresses, if it exists. */
  readonly eniIpCondition?: NodeCondition;
  /** The condition that it has no exclusive ENIs, if it exists. */
  readonly directEniCondition?: NodeCondition;
  /** Our extended resources of which kubelet offers Pods at least one. */
  readonly offeredResources: readonly string[];
  /** Its first IPv4 address of type InternalIP: that of its primary ENI. */
  readonly internalIp?: string;
  /** The condition NetworkUnavailable, if it exists. */
  readonly networkCondition?: NodeCondition;
  /** Annotations that ipamd reads, by their full names. */
  readonly annotations: Readonly<Record<string, string>>;
  /** Value of the label that names the subnets of its ENIs. */
  readonly subnetsLabel?: string;
  /** Value of the label that selects whether it serves exclusive ENIs. */
  readonly directEniLabel?: string;
  /** Value of the label that selects whether its Pods may have static addresses. */
  readonly staticIpLabel?: string;
  /** Present when Cilium gets the addresses of its Pods from ipamd, by the CiliumNode of the same name. */
  readonly isCiliumCrd?: true;
  /** `spec.podCIDRs` as the object has them: networks of Pods without an address of the VPC. Most nodes have none. */
  readonly podCidrs: readonly string[];
};

/** Type of the Node's condition about routes to its Pods, of the route controllers of cloud providers. */
const NETWORK_CONDITION = 'NetworkUnavailable';

/** Value of {@link NODE_CILIUM_IPAM_LABEL}. */
const CILIUM_IPAM_CRD = 'crd';

/** A taint as the object contains it. */
export type NodeTaint = { readonly key: string; readonly effect: string; readonly value?: string };

/** Fields of a condition of a Node. */
export type NodeCondition = { readonly status: string; readonly reason: string; readonly lastTransitionTime?: string };

const FOLLOWED: readonly string[] = Object.values(NODE_ANNOTATION);
const NONE: readonly never[] = Object.freeze([]);
const NO_ANNOTATIONS: Readonly<Record<string, string>> = Object.freeze({});
/** Decodes the fields of a Node that decisions need; accepts any shape. */
export function decodeNode(object: KubeObject): NodeEntry {
  const { name, uid = '', resourceVersion = '', labels = {}, annotations, deletionTimestamp } = object.metadata;
  const { creationTimestamp: createdAt = '' } = object.metadata;
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  const conditions = recordsOf(status['conditions']);
  const { providerID } = spec;
  const ownId = instanceIdOf(providerID);
  const instanceId = ownId ?? instanceIdOf(labels[NODE_INSTANCE_LABEL]);
  const isForeign = ownId === undefined && typeof providerID === 'string' && providerID !== '';
  const condition = conditions.find((one) => one['type'] === ENI_IP_CONDITION);
  const direct = conditions.find((one) => one['type'] === DIRECT_ENI_CONDITION);
  const network = conditions.find((one) => one['type'] === NETWORK_CONDITION);
  const internalIp = internalIpOf(status['addresses']);
  const isSuper = isSuperNode(labels);
  const zone = labels[ZONE_LABEL];
  const subnetsLabel = labels[NODE_SUBNETS_LABEL];
  const directEniLabel = labels[NODE_DIRECT_ENI_LABEL];
  const staticIpLabel = labels[NODE_STATIC_IP_LABEL];
  return {
    name,
    uid,
    resourceVersion,
    createdAt,
    ...(instanceId === undefined ? {} : { instanceId }),
    ...(isForeign ? { foreignProviderId: providerID } : {}),
    isInstance: !isSuper,
    ...(isSuper && zone !== undefined ? { zoneLabel: zone } : {}),
    isReady: conditions.some((one) => one['type'] === 'Ready' && one['status'] === 'True'),
    isLeaving: deletionTimestamp !== undefined,
    addresses: textsOf(recordsOf(status['addresses']).map((one) => one['address'])),
    taints: taintsOf(spec['taints']),
    ...(condition === undefined ? {} : { eniIpCondition: conditionOf(condition) }),
    ...(direct === undefined ? {} : { directEniCondition: conditionOf(direct) }),
    offeredResources: offeredOf(recordOf(status['allocatable'])),
    ...(internalIp === undefined ? {} : { internalIp }),
    ...(network === undefined ? {} : { networkCondition: conditionOf(network) }),
    annotations: followedOf(annotations),
    ...(subnetsLabel === undefined ? {} : { subnetsLabel }),
    ...(directEniLabel === undefined ? {} : { directEniLabel }),
    ...(staticIpLabel === undefined ? {} : { staticIpLabel }),
    ...(labels[NODE_CILIUM_IPAM_LABEL] === CILIUM_IPAM_CRD ? { isCiliumCrd: true } : {}),
    podCidrs: podCidrsOf(spec),
  };
}

function podCidrsOf({ podCIDR, podCIDRs }: Readonly<Record<string, unknown>>): readonly string[] {
  const all = textsOf([podCIDR, ...listOf(podCIDRs)]).filter((one) => one !== '');
  return all.length === 0 ? NONE : [...new Set(all)];
}

function offeredOf(allocatable: Readonly<Record<string, unknown>>): readonly string[] {
  const offered = EXTENDED_RESOURCES.filter((name) => !/^0*$/.test(String(allocatable[name] ?? '')));
  return offered.length === 0 ? NONE : offered;
}

function internalIpOf(addresses: unknown): string | undefined {
  const found = recordsOf(addresses).find(({ type, address }) => type === 'InternalIP' && isIPv4(String(address)));
  return found === undefined ? undefined : String(found['address']);
}

/** Reports whether two entries lead to the same decisions: most changes of a Node are heartbeats. */
export function isSameNode(before: NodeEntry, after: NodeEntry): boolean {
  const { resourceVersion: _before, ...first } = before;
  const { resourceVersion: _after, ...second } = after;
  return JSON.stringify(first) === JSON.stringify(second);
}

function taintsOf(value: unknown): readonly NodeTaint[] {
  // With unknown fields: the patch compares with what the server has. The server itself checks their shape.
  return Array.isArray(value) && value.length > 0 ? (recordsOf(value) as readonly NodeTaint[]) : NONE;
}

function conditionOf(condition: Readonly<Record<string, unknown>>): NodeCondition {
  const since = condition['lastTransitionTime'];
  return {
    status: String(condition['status']),
    reason: String(condition['reason']),
    ...(typeof since === 'string' ? { lastTransitionTime: since } : {}),
  };
}

function followedOf(annotations: Readonly<Record<string, string>> = NO_ANNOTATIONS): Readonly<Record<string, string>> {
  const followed = FOLLOWED.filter((name) => typeof annotations[name] === 'string');
  if (followed.length === 0) return NO_ANNOTATIONS;
  return Object.fromEntries(followed.map((name) => [name, annotations[name] ?? '']));
}
