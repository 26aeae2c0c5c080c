import { objectName } from '../../crd/common-values.ts';
import { API_VERSION, CLOUD_FINALIZER, ENI_ZONE_LABEL, NODE_NAME_LABEL } from '../../crd/names.ts';
import { VPC_ENI_KIND } from '../../crd/vpc-eni.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { Faults, isRecord } from '../../runtime/decode.ts';
import type { EniPlace, VpcEniPhase } from './decide-vpc-eni.ts';

type Raw = Readonly<Record<string, unknown>>;

/**
 * Returns the name of an ENI's VpcENI: the ENI's name in the cloud, or its id where Kubernetes does not accept the
 * name.
 */
function vpcEniNameOf({ name = '', eniID }: EniPlace['eni']): string {
  const faults = new Faults();
  objectName.decoder(name, '', faults);
  return faults.list.length === 0 ? name : eniID;
}

/** Builds the VpcENI of an ENI that a node has. */
export function newVpcEni(place: EniPlace, phase: VpcEniPhase, nowText: string): KubeObject {
  const bare: KubeObject = {
    apiVersion: API_VERSION,
    kind: VPC_ENI_KIND.kind,
    metadata: { name: vpcEniNameOf(place.eni) },
    spec: { mode: 'direct-eni' },
  };
  return withEni(bare, place, phase, nowText);
}

/**
 * Returns a VpcENI with the present state of its ENI; everything else is unchanged. `place` undefined: it is on no
 * node. The claim of an ENI never changes. Only with a claim the finalizer keeps the object until the ENI is deleted.
 */
export function withEni(
  object: KubeObject,
  place: EniPlace | undefined,
  phase: VpcEniPhase,
  nowText: string,
): KubeObject {
  const spec = specOf(recordOf(object['spec']), place, phase);
  const isKept = isRecord(spec['claimRef']);
  const isInUse = isKept && place?.eni.claim?.uid !== undefined && phase !== 'Available';
  const status = statusOf(recordOf(object['status']), place, phase, { isKept, isInUse, nowText });
  return { ...object, metadata: metadataOf(object, place, phase, isKept), spec, status };
}

/** Returns the object without ipamd's finalizer, once nothing of it is left in the cloud. */
export function withoutFinalizer(object: KubeObject): KubeObject {
  const finalizers = (object.metadata.finalizers ?? []).filter((name) => name !== CLOUD_FINALIZER);
  return { ...object, metadata: { ...object.metadata, finalizers } };
}

/** Returns the object with a problem text for people; '' for none. */
export function withMessage(object: KubeObject, message: string): KubeObject {
  const { message: _before, ...status } = recordOf(object['status']);
  return { ...object, status: message === '' ? status : { ...status, message: message.slice(0, LONGEST_MESSAGE) } };
}

const LONGEST_MESSAGE = 1_024;

function isOnNode(phase: VpcEniPhase): boolean {
  return phase !== 'Available' && phase !== 'Deleting';
}

function specOf(before: Raw, place: EniPlace | undefined, phase: VpcEniPhase): Raw {
  const { nodeName: _node, instanceID: _instance, ...kept } = before;
  const onNode = place !== undefined && isOnNode(phase);
  const claim = place?.eni.claim;
  return {
    ...kept,
    mode: 'direct-eni',
    ...(place?.eni.subnetID === undefined ? {} : { subnetID: place.eni.subnetID }),
    ...(onNode ? { nodeName: place.nodeName, instanceID: place.instanceId } : {}),
    ...(claim === undefined ? {} : { claimRef: { ...claim } }),
  };
}

function statusOf(
  before: Raw,
  place: EniPlace | undefined,
  phase: VpcEniPhase,
  { isKept, isInUse, nowText }: { readonly isKept: boolean; readonly isInUse: boolean; readonly nowText: string },
): Raw {
  const { instanceID: _instance, retainedSince, message: _over, ...kept } = before;
  const eni = place?.eni;
  const own = eni === undefined ? {} : { eniID: eni.eniID, mac: eni.mac };
  return {
    ...kept,
    phase,
    ...own,
    ...(eni?.primaryIP === undefined ? {} : { primaryIP: eni.primaryIP }),
    ...(eni?.gateway === undefined ? {} : { gateway: eni.gateway }),
    ...(eni?.subnetCIDR === undefined ? {} : { subnetCIDR: eni.subnetCIDR }),
    ...(place !== undefined && isOnNode(phase) ? { instanceID: place.instanceId } : {}),
    ...(isKept && !isInUse ? { retainedSince: retainedSince ?? nowText } : {}),
  };
}

function metadataOf(
  { metadata }: KubeObject,
  place: EniPlace | undefined,
  phase: VpcEniPhase,
  isKept: boolean,
): KubeObject['metadata'] {
  const { [NODE_NAME_LABEL]: _node, ...labels } = metadata.labels ?? {};
  const named = place !== undefined && isOnNode(phase) ? { [NODE_NAME_LABEL]: place.nodeName } : {};
  const zone = place === undefined || place.zone === '' ? {} : { [ENI_ZONE_LABEL]: place.zone };
  const { finalizers = [], deletionTimestamp } = metadata;
  // The API server refuses a new finalizer on an object that is being deleted.
  const needs = isKept && deletionTimestamp === undefined && !finalizers.includes(CLOUD_FINALIZER);
  return {
    ...metadata,
    labels: { ...labels, ...named, ...zone },
    ...(needs ? { finalizers: [...finalizers, CLOUD_FINALIZER] } : {}),
  };
}

function recordOf(value: unknown): Raw {
  return isRecord(value) ? value : {};
}
