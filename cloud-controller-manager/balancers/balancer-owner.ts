import { createHash } from 'node:crypto';
import type { Tags } from '../../cloud/cloud.ts';
import { OWNER_TAG } from '../../crd/cloud-tags.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { NoticeReason } from './notice.ts';
import type { OwnerMark } from './owner-mark.ts';

/** The object that a load balancer is for, as far as the keeping of the load balancer depends on it. */
export type BalancerOwner = {
  readonly kind: OwnerKind;
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Whether its deletion waits for the load balancer. */
  readonly hasFinalizer: boolean;
  readonly annotations: Readonly<Record<string, string>>;
};

/** The kinds of objects that have load balancers, as the tag of the owner has them. */
export type OwnerKind = 'service' | 'ingress';

/** What messages name of an owner, by its kind: the object, reasons of notices, and annotations. */
export const OWNER_NAMES = {
  service: {
    object: 'Service',
    invalid: 'ServiceInvalid',
    refused: 'ServiceRefused',
    existing: 'service.kubernetes.io/tke-existed-lbid',
    subnet: 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid',
    securityGroups: 'service.cloud.tencent.com/security-groups',
    mode: 'service.cloud.tencent.com/mode',
  },
  ingress: {
    object: 'Ingress',
    invalid: 'IngressInvalid',
    refused: 'IngressRefused',
    existing: 'kubernetes.io/ingress.existLbId',
    subnet: 'kubernetes.io/ingress.subnetId',
    securityGroups: 'ingress.cloud.tencent.com/security-groups',
    mode: 'ingress.cloud.tencent.com/mode',
  },
} as const;

/** Names an owner. */
export type OwnerRef = Pick<BalancerOwner, 'kind' | 'key'>;

/** Where clients reach an owner: an entry of `status.loadBalancer.ingress`. */
export type StatusAddress = { readonly ip?: string; readonly hostname?: string; readonly ipMode?: string };

/** Reads owners, and writes their marks. */
export type OwnerWriter = {
  readonly kind: OwnerKind;
  /** The product's annotation for the id of the load balancer. */
  readonly idAnnotation: string;
  /** Reads the head of an owner; accepts any shape. */
  readonly headOf: (object: KubeObject) => BalancerOwner;
  /** Writes the finalizer and the mark of what is made next. @throws KubeError CONFLICT when the object has changed */
  readonly writeMark: (object: KubeObject, mark: OwnerMark, signal: AbortSignal) => Promise<KubeObject>;
};

/** What is wrong with an owner now. */
export type OwnerProblem = {
  readonly reason: NoticeReason | 'DeleteLoadBalancerFailed' | 'StatusForbidden';
  readonly message: string;
};

/** What was done for an owner. */
export type OwnerProgress = {
  readonly reason:
    | 'EnsuringLoadBalancer'
    | 'EnsuredLoadBalancer'
    | 'UpdatedLoadBalancer'
    | 'DeletingLoadBalancer'
    | 'DeletedLoadBalancer';
  readonly message: string;
};

/** Reports about owners, as events and in the log. */
export type OwnerReports = {
  readonly progress: (owner: BalancerOwner, progress: OwnerProgress) => void;
  /** Reports what another client changed, and what became of it. */
  readonly drift: (owner: BalancerOwner, message: string) => void;
};

/** Names an owner among those of all kinds. */
export function ownerIdOf({ kind, key }: OwnerRef): string {
  return `${kind} ${key}`;
}

/** Returns the value of `OWNER_TAG` of what is made for an owner. */
export function ownerOf(clusterId: string, uid: string, kind: OwnerKind): string {
  return `${clusterId}/${kind}/${uid}`;
}

/** Tells for which object of a kind something was made in this cluster; undefined: for none, or not by this program. */
export function uidOf(clusterId: string, tags: Tags, kind: OwnerKind): string | undefined {
  const owner = tags[OWNER_TAG] ?? '';
  const prefix = ownerOf(clusterId, '', kind);
  return owner.startsWith(prefix) && owner.length > prefix.length ? owner.slice(prefix.length) : undefined;
}

/** Returns the name of the listeners of an owner: it is of this owner of this cluster alone. */
export function listenerNameOf(clusterId: string, uid: string, kind: OwnerKind): string {
  return nameOf(ownerOf(clusterId, uid, kind));
}

/** Returns the name of the listeners that Ingresses of a cluster share on a load balancer. */
export function groupListenerNameOf(clusterId: string, loadBalancerId: string): string {
  return nameOf(`${clusterId}/ingress-group/${loadBalancerId}`);
}

/** Reports whether a listener has a name of this program, of whatever owner and cluster. */
export function isOwnListenerName(name: string): boolean {
  return /^tke-eni-[0-9a-f]{16}$/.test(name);
}

function nameOf(owner: string): string {
  return `tke-eni-${createHash('sha256').update(owner).digest('hex').slice(0, 16)}`;
}
