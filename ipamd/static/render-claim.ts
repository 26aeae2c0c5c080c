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

/** Whose claim it is, and what it goes with. */
export type ClaimHead = {
  readonly namespace: string;
  readonly name: string;
  /** Undefined leaves the owners as they are. */
  readonly owner: PodOwner | undefined;
};

/**
 * Writes a claim, new or into what is there: fields of others, the scheduler's first, stay as they are. The same wanted
 * claim again changes nothing. Pure.
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

/** Makes the merge patch that says of a claim that it cannot be read, and touches nothing else of it. Pure. */
export function renderInvalid(message: string, resourceVersion: string | undefined, nowText: string): object {
  const said = message.slice(0, MOST_CHARS);
  const ready = { type: 'Ready', status: 'False', reason: 'ClaimInvalid', message: said } as const;
  const metadata = resourceVersion === undefined ? {} : { metadata: { resourceVersion } };
  return { ...metadata, status: { conditions: withCondition([], ready, nowText) } };
}

/** Of a condition's message. */
const MOST_CHARS = 2_048;

/** Writes a VpcIP, new or into what is there. Nobody owns it: a cluster's object cannot go with a namespace's. Pure. */
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
    // As it was written first: another spelling of the same address would be a change, which the API refuses.
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

/** The finalizer goes on with the first write; the API server refuses it on what is going. */
function withHead(object: KubeObject, owner: PodOwner | undefined): KubeObject {
  const { deletionTimestamp, ownerReferences = [] } = object.metadata;
  const held = deletionTimestamp === undefined ? withFinalizer(object, CLOUD_FINALIZER) : object;
  if (owner === undefined || ownerReferences.some(({ uid }) => uid === owner.uid)) return held;
  // Without blockOwnerDeletion: the end of a workload waits for nothing of ours.
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
  // The schema has checked them; what is none goes with the write.
  return Array.isArray(conditions) ? conditions.filter((one) => isRecord(one) && typeof one['type'] === 'string') : [];
}

/** Sets fields; those that are undefined are taken away. */
function withFields(current: Fields, fields: Fields): Fields {
  const merged = { ...current, ...fields };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined));
}

function recordOf(value: unknown): Fields {
  return isRecord(value) ? value : NO_FIELDS;
}
