import { objectName } from '../../crd/common-values.ts';
import { API_VERSION, CLOUD_FINALIZER, ENI_ZONE_LABEL, NODE_NAME_LABEL } from '../../crd/names.ts';
import { VPC_ENI_KIND } from '../../crd/vpc-eni.ts';
import { withFinalizer } from '../../kube/finalizers.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { Faults, isRecord } from '../../runtime/decode.ts';
import { type JsonObject, recordOf } from '../../runtime/json.ts';
import { MAX_TEXT, messageText } from '../../runtime/limit-text.ts';
import type { NodeEniEntry, VpcEniPhase } from './decide-vpc-eni.ts';

/**
 * Returns the name of an ENI's VpcENI: the ENI's name in the cloud, or its id where Kubernetes does not accept the
 * name.
 */
function vpcEniNameOf({ name = '', eniID }: NodeEniEntry['eni']): string {
  const faults = new Faults();
  objectName.decoder(name, '', faults);
  return faults.list.length === 0 ? name : eniID;
}

/** Builds the VpcENI of an ENI that a node has. */
export function newVpcEni(entry: NodeEniEntry, phase: VpcEniPhase, nowText: string): KubeObject {
  const bare: KubeObject = {
    apiVersion: API_VERSION,
    kind: VPC_ENI_KIND.kind,
    metadata: { name: vpcEniNameOf(entry.eni) },
    spec: { mode: 'direct-eni' },
  };
  return withEni(bare, entry, phase, nowText);
}

/**
 * Returns a VpcENI with the present state of its ENI; everything else is unchanged. `entry` undefined: it is on no
 * node. The claim of an ENI never changes. Only with a claim the finalizer keeps the object until the ENI is deleted.
 */
export function withEni(
  object: KubeObject,
  entry: NodeEniEntry | undefined,
  phase: VpcEniPhase,
  nowText: string,
): KubeObject {
  const spec = specOf(recordOf(object['spec']), entry, phase);
  const isStatic = isRecord(spec['claimRef']);
  const isInUse = isStatic && entry?.eni.claim?.uid !== undefined && phase !== 'Available';
  const pod = podReferenceOf(spec['claimRef']) ?? entry?.pod;
  const status = statusOf(recordOf(object['status']), entry, phase, { isStatic, isInUse, pod, nowText });
  const next = { ...object, metadata: metadataOf(object, entry, phase), spec, status };
  // The API server refuses a new finalizer on an object that is being deleted.
  return isStatic && object.metadata.deletionTimestamp === undefined ? withFinalizer(next, CLOUD_FINALIZER) : next;
}

/** Returns the object with a problem text for people; '' for none. */
export function withMessage(object: KubeObject, message: string): KubeObject {
  const { message: _before, ...status } = recordOf(object['status']);
  return {
    ...object,
    status: message === '' ? status : { ...status, message: messageText(message, MAX_TEXT.statusMessage) },
  };
}

function isOnNode(phase: VpcEniPhase): boolean {
  return phase !== 'Available' && phase !== 'Deleting';
}

function specOf(before: JsonObject, entry: NodeEniEntry | undefined, phase: VpcEniPhase): JsonObject {
  const { nodeName: _node, instanceID: _instance, ...kept } = before;
  const onNode = entry !== undefined && isOnNode(phase);
  const claim = entry?.eni.claim;
  return {
    ...kept,
    mode: 'direct-eni',
    ...(entry?.eni.subnetID === undefined ? {} : { subnetID: entry.eni.subnetID }),
    ...(onNode ? { nodeName: entry.nodeName, instanceID: entry.instanceId } : {}),
    ...(claim === undefined ? {} : { claimRef: { ...claim } }),
  };
}

type StatusFacts = {
  readonly isStatic: boolean;
  readonly isInUse: boolean;
  readonly pod: NodeEniEntry['pod'] | undefined;
  readonly nowText: string;
};

function podReferenceOf(claimRef: unknown): NodeEniEntry['pod'] | undefined {
  const { namespace, name } = recordOf(claimRef);
  return typeof namespace === 'string' && typeof name === 'string' ? { namespace, name } : undefined;
}

function statusOf(
  before: JsonObject,
  entry: NodeEniEntry | undefined,
  phase: VpcEniPhase,
  { isStatic, isInUse, pod, nowText }: StatusFacts,
): JsonObject {
  const { instanceID: _instance, podNamespace: _space, podName: _pod, retainedSince, message: _over, ...kept } = before;
  const eni = entry?.eni;
  const own = eni === undefined ? {} : { eniID: eni.eniID, mac: eni.mac };
  return {
    ...kept,
    phase,
    ...own,
    ...(eni?.primaryIP === undefined ? {} : { primaryIP: eni.primaryIP }),
    ...(eni?.gateway === undefined ? {} : { gateway: eni.gateway }),
    ...(eni?.subnetCIDR === undefined ? {} : { subnetCIDR: eni.subnetCIDR }),
    ...(entry !== undefined && isOnNode(phase) ? { instanceID: entry.instanceId } : {}),
    ...(pod === undefined ? {} : { podNamespace: pod.namespace, podName: pod.name }),
    ...(isStatic && !isInUse ? { retainedSince: retainedSince ?? nowText } : {}),
  };
}

function metadataOf(
  { metadata }: KubeObject,
  entry: NodeEniEntry | undefined,
  phase: VpcEniPhase,
): KubeObject['metadata'] {
  const { [NODE_NAME_LABEL]: _node, ...labels } = metadata.labels ?? {};
  const named = entry !== undefined && isOnNode(phase) ? { [NODE_NAME_LABEL]: entry.nodeName } : {};
  const zone = entry === undefined || entry.zone === '' ? {} : { [ENI_ZONE_LABEL]: entry.zone };
  return { ...metadata, labels: { ...labels, ...named, ...zone } };
}
