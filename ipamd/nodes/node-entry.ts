import {
  ENI_IP_CONDITION,
  NODE_ANNOTATION,
  NODE_DIRECT_ENI_LABEL,
  NODE_INSTANCE_LABEL,
  NODE_STATIC_IP_LABEL,
  NODE_SUBNETS_LABEL,
} from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isRecord } from '../../runtime/decode.ts';
import { instanceIdOf } from './provider-id.ts';

/** What ipamd keeps of a Node; a cluster has thousands, and most of each object is images and conditions. */
export type NodeEntry = {
  readonly name: string;
  /** Changes when a node of the same name registers anew. */
  readonly uid: string;
  readonly resourceVersion: string;
  /** RFC 3339, as the API server writes it: to be compared as text. */
  readonly createdAt: string;
  /** By `spec.providerID`, else by label. Absent: a Machine may know it. */
  readonly instanceId?: string;
  /** What `spec.providerID` says where it names no instance of this cloud. */
  readonly foreignProviderId?: string;
  /** False for a super node, which has neither instance nor ENIs. */
  readonly isInstance: boolean;
  readonly isReady: boolean;
  /** Somebody asked for its deletion. */
  readonly isLeaving: boolean;
  readonly addresses: readonly string[];
  /** As they are, all of them: a patch of one must leave the others. */
  readonly taints: readonly NodeTaint[];
  /** The condition that it has no addresses, where somebody wrote one. */
  readonly eniIpCondition?: EniIpCondition;
  /** Those that ipamd follows, by their full names. */
  readonly annotations: Readonly<Record<string, string>>;
  /** The label that names the subnets of its ENIs. */
  readonly subnetsLabel?: string;
  /** The label that says whether it serves exclusive ENIs. */
  readonly directEniLabel?: string;
  /** The label that says whether its Pods may keep their addresses. */
  readonly staticIpLabel?: string;
  /** It has a network for Pods that have no address of the VPC: the cluster is a hybrid one. */
  readonly hasPodCidr?: true;
};

/** A taint as the object has it. */
export type NodeTaint = { readonly key: string; readonly effect: string; readonly value?: string };

/** What a Node's condition ENIIPUnavailable says. */
export type EniIpCondition = { readonly status: string; readonly reason: string; readonly lastTransitionTime?: string };

const FOLLOWED: readonly string[] = Object.values(NODE_ANNOTATION);
const NONE: readonly never[] = Object.freeze([]);
const NO_ANNOTATIONS: Readonly<Record<string, string>> = Object.freeze({});
const SUPER_NODE = { label: 'node.kubernetes.io/instance-type', value: 'eklet' } as const;

/** Trims a Node to what decisions need; any shape is read. Pure. */
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
    isInstance: labels[SUPER_NODE.label] !== SUPER_NODE.value,
    isReady: conditions.some((one) => one['type'] === 'Ready' && one['status'] === 'True'),
    isLeaving: deletionTimestamp !== undefined,
    addresses: textsOf(recordsOf(status['addresses']).map((one) => one['address'])),
    taints: taintsOf(spec['taints']),
    ...(condition === undefined ? {} : { eniIpCondition: conditionOf(condition) }),
    annotations: followedOf(annotations),
    ...(subnetsLabel === undefined ? {} : { subnetsLabel }),
    ...(directEniLabel === undefined ? {} : { directEniLabel }),
    ...(staticIpLabel === undefined ? {} : { staticIpLabel }),
    ...(hasPodCidr(spec) ? { hasPodCidr: true } : {}),
  };
}

function hasPodCidr({ podCIDR, podCIDRs }: Readonly<Record<string, unknown>>): boolean {
  return [podCIDR, ...(Array.isArray(podCIDRs) ? podCIDRs : [])].some((one) => typeof one === 'string' && one !== '');
}

/** Tells whether two entries lead to the same decisions: most changes of a Node are heartbeats. Pure. */
export function isSameNode(before: NodeEntry, after: NodeEntry): boolean {
  const { resourceVersion: _before, ...first } = before;
  const { resourceVersion: _after, ...second } = after;
  return JSON.stringify(first) === JSON.stringify(second);
}

function taintsOf(value: unknown): readonly NodeTaint[] {
  // Whole, further fields too: the patch compares with what the server has. The server itself checks their shape.
  return Array.isArray(value) && value.length > 0 ? (recordsOf(value) as readonly NodeTaint[]) : NONE;
}

function conditionOf(condition: Readonly<Record<string, unknown>>): EniIpCondition {
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

function recordsOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isRecord) : NONE;
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function textsOf(values: readonly unknown[]): readonly string[] {
  return values.filter((value) => typeof value === 'string');
}
