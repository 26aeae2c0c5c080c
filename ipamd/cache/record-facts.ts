import { NODE_NAME_LABEL, RECORD_LABEL } from '../../crd/names.ts';
import { type VpcIp, vpcIp } from '../../crd/vpc-ip.ts';
import { type VpcIpClaim, vpcIpClaim } from '../../crd/vpc-ip-claim.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { withoutManagedFields } from '../../kube/managed-fields.ts';
import { type Decoder, type Fault, Faults } from '../../runtime/decode.ts';
import { recordOf, textOf } from '../../runtime/json.ts';

/** What ipamd caches of a VpcIP. */
export type VipFacts = {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Whether it has the label of a record. */
  readonly isRecord: boolean;
  /** It was deleted, and a finalizer keeps it. */
  readonly isLeaving: boolean;
  readonly nodeName: string;
  /** Key of the Pod, `namespace/name`, and its uid; '' when it names none. */
  readonly podKey: string;
  readonly podUid: string;
  readonly ip: string;
  readonly eniId: string;
  readonly assignmentId: string;
  /** Of objects that are no records: the whole object, without `metadata.managedFields`. */
  readonly staticObject?: StaticObject<VpcIp>;
};

/** An object of a static address. Undefined when it has faults: then it is neither changed nor applied. */
export type StaticObject<T> = { readonly decoded: T | undefined; readonly faults: readonly Fault[] };

/** What ipamd caches of a VpcIPClaim. */
export type ClaimFacts = {
  /** `namespace/name`, the same as the Pod's. */
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Whether it has the label of a record. */
  readonly isRecord: boolean;
  /** It was deleted, and a finalizer keeps it. */
  readonly isLeaving: boolean;
  readonly nodeName: string;
  readonly podUid: string;
  readonly ips: readonly string[];
  readonly eniId: string;
  /** Of objects that are no records: the whole object, without `metadata.managedFields`. */
  readonly staticObject?: StaticObject<VpcIpClaim>;
};

/** Indexes of the informers of VpcIPs and VpcIPClaims: byIndex(RECORDS_BY_NODE, nodeName). */
export const RECORDS_BY_NODE = 'node';

/** Name of the index of VpcIPs that are no records by the key of their claim. */
export const VIPS_BY_CLAIM = 'claim';

/** Indexes of the informer of VpcIPs. */
export const VIP_INDEXES = {
  [RECORDS_BY_NODE]: (vip: VipFacts): readonly string[] => [vip.nodeName],
  [VIPS_BY_CLAIM]: (vip: VipFacts): readonly string[] => (vip.isRecord || vip.podKey === '' ? [] : [vip.podKey]),
};

/** Indexes of the informer of VpcIPClaims. */
export const CLAIM_INDEXES = { [RECORDS_BY_NODE]: (claim: ClaimFacts): readonly string[] => [claim.nodeName] };

/** Decodes a VpcIP for an informer. Malformed fields count as absent: only the label decides whether it is a record. */
export function decodeVip(object: KubeObject): VipFacts {
  const { metadata } = object;
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  const pod = recordOf(spec['claimRef']);
  return {
    ...identityOf(object),
    name: metadata.name,
    nodeName: metadata.labels?.[NODE_NAME_LABEL] ?? textOf(spec['nodeName']),
    podKey: pod['name'] === undefined ? '' : `${textOf(pod['namespace'])}/${textOf(pod['name'])}`,
    podUid: textOf(pod['uid']),
    ip: textOf(spec['ip']),
    eniId: textOf(status['eniID']),
    assignmentId: textOf(status['assignmentID']),
    ...staticObjectOf(object, vpcIp),
  };
}

/** Decodes a VpcIPClaim for an informer. Malformed fields count as absent. */
export function decodeClaim(object: KubeObject): ClaimFacts {
  const { metadata } = object;
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  const ips = Array.isArray(status['ips']) ? status['ips'].map(textOf) : [];
  return {
    ...identityOf(object),
    key: `${metadata.namespace ?? ''}/${metadata.name}`,
    nodeName: metadata.labels?.[NODE_NAME_LABEL] ?? textOf(status['nodeName']),
    podUid: textOf(spec['podUID']),
    ips,
    eniId: textOf(status['eniID']),
    ...staticObjectOf(object, vpcIpClaim),
  };
}

/**
 * What is kept of claims. Some are edited, and what a person wrote stays unread where it is too much: such a claim is neither
 * changed nor applied.
 */
export const CLAIM_BOUNDS = {
  objectBytes: 65_536,
  namespaceBytes: 32 * 1_048_576,
  smallBytes: 16_384,
  instead: (object: KubeObject, _: string, got: string): ClaimFacts => {
    const { staticObject, ...facts } = decodeClaim({ ...object, metadata: withoutLists(object.metadata) });
    const faults = [{ path: '', expected: 'a claim as ipamd writes it', got }];
    const ips = facts.ips.slice(0, MAX_IPS);
    return { ...facts, ips, ...(staticObject === undefined ? {} : { staticObject: { decoded: undefined, faults } }) };
  },
};

const MAX_IPS = 16;

function withoutLists({ annotations: _annotations, ...metadata }: KubeObject['metadata']): KubeObject['metadata'] {
  return metadata;
}

/**
 * Decodes the whole object, except of records: there are as many as Pods, and only the fields above are used of them.
 */
function staticObjectOf<T>(object: KubeObject, decoder: Decoder<T>): { readonly staticObject?: StaticObject<T> } {
  if (identityOf(object).isRecord) return {};
  const faults = new Faults();
  const decoded = decoder(withoutManagedFields(object), '', faults);
  return { staticObject: { decoded: faults.list.length > 0 ? undefined : decoded, faults: faults.list } };
}

function identityOf({ metadata }: KubeObject) {
  return {
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    isRecord: metadata.labels?.[RECORD_LABEL.key] === RECORD_LABEL.value,
    isLeaving: metadata.deletionTimestamp !== undefined,
  };
}
