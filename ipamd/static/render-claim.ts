import { API_VERSION, CLOUD_FINALIZER, NODE_NAME_LABEL } from '../../crd/names.ts';
import { VPC_IP_KIND, vpcIpName } from '../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../crd/vpc-ip-claim.ts';
import { type Condition, withCondition } from '../../kube/conditions.ts';
import { withFinalizer } from '../../kube/finalizers.ts';
import type { KubeObject, OwnerReference } from '../../kube/kube-client.ts';
import { isRecord } from '../../runtime/decode.ts';
import type { PodOwner } from '../records/pod-facts.ts';
import type { TakenIp } from './claim-view.ts';
import type { WantedClaim, WantedVip } from './decision.ts';

type Fields = Readonly<Record<string, unknown>>;

const NO_FIELDS: Fields = Object.freeze({});

/** Name and owner of a claim. */
type ClaimHead = {
  readonly namespace: string;
  readonly name: string;
  /** Undefined leaves the owners unchanged. */
  readonly owner: PodOwner | undefined;
};

/**
 * Renders a claim, new or merged into the present object: fields of others, such as the scheduler, stay unchanged.
 * Idempotent.
 */
export function renderKeptClaim(
  { namespace, name, owner }: ClaimHead,
  wanted: WantedClaim,
  current: KubeObject | undefined,
  nowText: string,
): KubeObject {
  const base = current ?? newObject(VPC_IP_CLAIM_KIND.kind, { name, namespace });
  const conditions = conditionsOf(base);
  const ready = {
    type: 'Ready',
    status: wanted.reason === 'AddressBound' ? 'True' : 'False',
    reason: wanted.reason,
    ...(wanted.status.message === undefined ? {} : { message: wanted.status.message }),
  } as const;
  const { retainedSince, lastPod, ...rest } = wanted.status;
  const status = withFields(recordOf(base['status']), {
    ...rest,
    retainedSince,
    lastPod,
    conditions: withTaken(withCondition(conditions, ready, nowText), wanted.taken, nowText),
  });
  const spec = withFields(recordOf(base['spec']), wanted.spec);
  return { ...withHead(base, owner), spec, status };
}

/** Builds the merge patch with the condition that a claim is unreadable; it changes nothing else of the claim. */
export function renderInvalid(message: string, resourceVersion: string | undefined, nowText: string): object {
  const said = message.slice(0, MOST_CHARS);
  const ready = { type: 'Ready', status: 'False', reason: 'ClaimInvalid', message: said } as const;
  const metadata = resourceVersion === undefined ? {} : { metadata: { resourceVersion } };
  return { ...metadata, status: { conditions: withCondition([], ready, nowText) } };
}

/** Longest message of a condition, characters. */
const MOST_CHARS = 2_048;

/**
 * Renders a VpcIP, new or merged into the present object. It has no owner: a cluster-scoped object cannot have a
 * namespaced owner.
 */
export function renderKeptVip(
  key: string,
  wanted: WantedVip,
  current: KubeObject | undefined,
  nowText: string,
): KubeObject {
  const [namespace = '', name = ''] = key.split('/');
  const base = current ?? newObject(VPC_IP_KIND.kind, { name: vpcIpName(wanted.ip) });
  const { podUid, subnetId, nodeName, phase, eniId, assignmentId, message, taken } = wanted;
  const claimRef = { namespace, name, ...(podUid === undefined ? {} : { uid: podUid }) };
  const spec = withFields(recordOf(base['spec']), {
    type: 'Pod',
    // As it was first written: another spelling of the same address would be a change, which the API server refuses.
    ip: recordOf(base['spec'])['ip'] ?? wanted.ip,
    claimRef,
    subnetID: subnetId,
    nodeName,
  });
  const listed = withTaken(conditionsOf(base), taken, nowText);
  const conditions = listed.length === 0 ? undefined : listed;
  const status = withFields(recordOf(base['status']), {
    phase,
    eniID: eniId,
    assignmentID: assignmentId,
    message,
    conditions,
  });
  const labelled = withLabel(withHead(base, undefined), NODE_NAME_LABEL, nodeName);
  return { ...labelled, spec, status };
}

function newObject(kind: string, metadata: KubeObject['metadata']): KubeObject {
  return { apiVersion: API_VERSION, kind, metadata };
}

/**
 * Adds finalizer and owner. The finalizer is added with the first write; the API server refuses it on an object that is
 * being deleted.
 */
function withHead(object: KubeObject, owner: PodOwner | undefined): KubeObject {
  const { deletionTimestamp, ownerReferences = [] } = object.metadata;
  const held = deletionTimestamp === undefined ? withFinalizer(object, CLOUD_FINALIZER) : object;
  if (owner === undefined || ownerReferences.some(({ uid }) => uid === owner.uid)) return held;
  // Without blockOwnerDeletion: the deletion of a workload does not wait for ipamd's objects.
  const { apiVersion, kind, name, uid } = owner;
  const reference: OwnerReference = { apiVersion, kind, name, uid };
  return { ...held, metadata: { ...held.metadata, ownerReferences: [reference] } };
}

function withLabel(object: KubeObject, name: string, value: string | undefined): KubeObject {
  const { [name]: before, ...others } = object.metadata.labels ?? {};
  if (before === value) return object;
  const labels = value === undefined ? others : { ...others, [name]: value };
  return { ...object, metadata: { ...object.metadata, labels } };
}

function withTaken(
  conditions: readonly Condition[],
  taken: TakenIp | undefined,
  nowText: string,
): readonly Condition[] {
  const isKnown = conditions.some(({ type }) => type === 'AddressTaken');
  if (taken === undefined && !isKnown) return conditions;
  const wanted =
    taken === undefined
      ? ({ type: 'AddressTaken', status: 'False', reason: 'Free' } as const)
      : ({ type: 'AddressTaken', status: 'True', reason: 'InUse', message: taken.message } as const);
  return withCondition(conditions, wanted, nowText);
}

function conditionsOf(object: KubeObject): readonly Condition[] {
  const { conditions } = recordOf(object['status']);
  // The schema has validated them; entries that are no conditions are dropped with the write.
  return Array.isArray(conditions) ? conditions.filter((one) => isRecord(one) && typeof one['type'] === 'string') : [];
}

/** Sets fields; undefined ones are removed. */
function withFields(current: Fields, fields: Fields): Fields {
  const merged = { ...current, ...fields };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined));
}

function recordOf(value: unknown): Fields {
  return isRecord(value) ? value : NO_FIELDS;
}
