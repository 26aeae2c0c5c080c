import { API_VERSION, CLOUD_FINALIZER, NODE_NAME_LABEL } from '../../../crd/names.ts';
import { VPC_IP_KIND, vpcIpName } from '../../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../../crd/vpc-ip-claim.ts';
import { type Condition, withCondition } from '../../../kube/conditions.ts';
import { withFinalizer } from '../../../kube/finalizers.ts';
import type { KubeObject, OwnerReference } from '../../../kube/kube-client.ts';
import { isRecord } from '../../../runtime/decode.ts';
import { type JsonObject, recordOf } from '../../../runtime/json.ts';
import type { PodOwner } from '../../cache/pod-facts.ts';
import { claimMarkOf } from '../../decide/claim-marks.ts';
import type { DesiredClaim, DesiredVip } from './claim-decision.ts';
import type { AddressConflict } from './claim-view.ts';

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
export function renderClaim(
  { namespace, name, owner }: ClaimHead,
  desired: DesiredClaim,
  current: KubeObject | undefined,
  nowText: string,
): KubeObject {
  const base = current ?? newObject(VPC_IP_CLAIM_KIND.kind, { name, namespace });
  const conditions = conditionsOf(base);
  const ready = {
    type: 'Ready',
    status: desired.reason === 'AddressBound' ? 'True' : 'False',
    reason: desired.reason,
    ...(desired.status.message === undefined ? {} : { message: desired.status.message }),
  } as const;
  const { retainedSince, lastPod, ...rest } = desired.status;
  const status = withFields(recordOf(base['status']), {
    ...rest,
    retainedSince,
    lastPod,
    conditions: withPublished(
      withConflict(withCondition(conditions, ready, nowText), desired.conflict, nowText),
      desired.published,
      nowText,
    ),
  });
  const spec = withFields(recordOf(base['spec']), desired.spec);
  return { ...withHead(base, owner), spec, status };
}

/** Builds the merge patch with the condition that a claim is unreadable; it changes nothing else of the claim. */
export function renderInvalid(message: string, resourceVersion: string | undefined, nowText: string): object {
  const ready = { type: 'Ready', status: 'False', reason: 'ClaimInvalid', message } as const;
  const metadata = resourceVersion === undefined ? {} : { metadata: { resourceVersion } };
  return { ...metadata, status: { conditions: withCondition([], ready, nowText) } };
}

/**
 * Renders a VpcIP, new or merged into the present object. It has no owner: a cluster-scoped object cannot have a
 * namespaced owner.
 */
export function renderVip(
  key: string,
  desired: DesiredVip,
  current: KubeObject | undefined,
  nowText: string,
): KubeObject {
  const base = current ?? newObject(VPC_IP_KIND.kind, { name: vpcIpName(desired.ip) });
  const { podUid, subnetId, nodeName, phase, eniId, assignmentId, message, conflict } = desired;
  const spec = withFields(recordOf(base['spec']), {
    type: 'Pod',
    // As it was first written: another spelling of the same address would be a change, which the API server refuses.
    ip: recordOf(base['spec'])['ip'] ?? desired.ip,
    claimRef: claimMarkOf(key, podUid),
    subnetID: subnetId,
    nodeName,
  });
  const listed = withConflict(conditionsOf(base), conflict, nowText);
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
  const finalized = deletionTimestamp === undefined ? withFinalizer(object, CLOUD_FINALIZER) : object;
  if (owner === undefined || ownerReferences.some(({ uid }) => uid === owner.uid)) return finalized;
  // Without blockOwnerDeletion: the deletion of a workload does not wait for ipamd's objects.
  const { apiVersion, kind, name, uid } = owner;
  const reference: OwnerReference = { apiVersion, kind, name, uid };
  return { ...finalized, metadata: { ...finalized.metadata, ownerReferences: [reference] } };
}

function withLabel(object: KubeObject, name: string, value: string | undefined): KubeObject {
  const { [name]: before, ...others } = object.metadata.labels ?? {};
  if (before === value) return object;
  const labels = value === undefined ? others : { ...others, [name]: value };
  return { ...object, metadata: { ...object.metadata, labels } };
}

function withConflict(
  conditions: readonly Condition[],
  conflict: AddressConflict | undefined,
  nowText: string,
): readonly Condition[] {
  const isKnown = conditions.some(({ type }) => type === 'AddressTaken');
  if (conflict === undefined && !isKnown) return conditions;
  const desired =
    conflict === undefined
      ? ({ type: 'AddressTaken', status: 'False', reason: 'Free' } as const)
      : ({ type: 'AddressTaken', status: 'True', reason: 'InUse', message: conflict.message } as const);
  return withCondition(conditions, desired, nowText);
}

function withPublished(
  conditions: readonly Condition[],
  published: DesiredClaim['published'],
  nowText: string,
): readonly Condition[] {
  const type = 'Published';
  if (published === undefined) {
    if (!conditions.some((one) => one.type === type)) return conditions;
    return withCondition(conditions, { type, status: 'False', reason: 'NoSuperNode' }, nowText);
  }
  const { isPublished, message } = published;
  const [status, reason] = isPublished ? (['True', 'Annotated'] as const) : (['False', 'AddressAwaited'] as const);
  return withCondition(conditions, { type, status, reason, message }, nowText);
}

function conditionsOf(object: KubeObject): readonly Condition[] {
  const { conditions } = recordOf(object['status']);
  // The schema has validated them; entries that are no conditions are dropped with the write.
  return Array.isArray(conditions) ? conditions.filter((one) => isRecord(one) && typeof one['type'] === 'string') : [];
}

/** Sets fields; undefined ones are removed. */
function withFields(current: JsonObject, fields: JsonObject): JsonObject {
  const merged = { ...current, ...fields };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined));
}
