import { CLOUD_FINALIZER, ENI_ZONE_LABEL } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { withoutManagedFields } from '../../kube/managed-fields.ts';
import { recordOf, textOf } from '../../runtime/json.ts';

/** What ipamd caches of a VpcENI. */
export type VpcEniEntry = {
  readonly name: string;
  readonly uid: string;
  /** '' when it names none: then ipamd did not write it. */
  readonly eniId: string;
  readonly mac: string;
  readonly primaryIp: string;
  readonly subnetId: string;
  readonly gateway: string;
  readonly subnetCidr: string;
  readonly nodeName: string;
  readonly zone: string;
  readonly phase: string;
  /** `namespace/name` of its claim; '' for a pool ENI. */
  readonly claim: string;
  /** RFC 3339; '' while a Pod uses it. */
  readonly retainedSince: string;
  /** Its deletion was requested. */
  readonly isLeaving: boolean;
  readonly hasFinalizer: boolean;
  /** As the API server has it, whole. */
  readonly object: KubeObject;
};

/** Names of the indexes of the informer of VpcENIs: by the id of the ENI, by the key of the claim. */
export const VPC_ENIS_BY = { eni: 'eni', claim: 'claim' } as const;

/** Indexes of the informer of VpcENIs. */
export const VPC_ENI_INDEXES = {
  [VPC_ENIS_BY.eni]: ({ eniId }: VpcEniEntry): readonly string[] => (eniId === '' ? [] : [eniId]),
  [VPC_ENIS_BY.claim]: ({ claim }: VpcEniEntry): readonly string[] => (claim === '' ? [] : [claim]),
};

/** Decodes a VpcENI for an informer; malformed fields count as absent. */
export function decodeVpcEni(object: KubeObject): VpcEniEntry {
  const { name, uid = '', labels, deletionTimestamp, finalizers = [] } = object.metadata;
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  const pod = recordOf(spec['claimRef']);
  const isStatic = textOf(pod['namespace']) !== '' && textOf(pod['name']) !== '';
  return {
    name,
    uid,
    eniId: textOf(status['eniID']),
    mac: textOf(status['mac']),
    primaryIp: textOf(status['primaryIP']),
    subnetId: textOf(spec['subnetID']),
    gateway: textOf(status['gateway']),
    subnetCidr: textOf(status['subnetCIDR']),
    nodeName: textOf(spec['nodeName']),
    zone: labels?.[ENI_ZONE_LABEL] ?? '',
    phase: textOf(status['phase']),
    claim: isStatic ? `${textOf(pod['namespace'])}/${textOf(pod['name'])}` : '',
    retainedSince: textOf(status['retainedSince']),
    isLeaving: deletionTimestamp !== undefined,
    hasFinalizer: finalizers.includes(CLOUD_FINALIZER),
    object: withoutManagedFields(object),
  };
}
