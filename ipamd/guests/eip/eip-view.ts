import type { Eip } from '../../../cloud/cloud.ts';
import type { EipClaim } from '../../../crd/eip-claim.ts';
import { type EipRequest, readEipRequest } from '../../../crd/eip-request.ts';
import { POD_ANNOTATION } from '../../../crd/names.ts';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { readClaimExpiry } from '../../../crd/pod-network-request.ts';
import { Faults, renderFault } from '../../../runtime/decode.ts';
import { type PodFacts, type PodOwner, runtimeUidOf } from '../../cache/pod-facts.ts';
import type { IpamdEventReason } from '../../events/event-reasons.ts';

/** The spec of a claim. */
export type EipSpec = NonNullable<EipClaim['spec']>;
/** The status of a claim. */
export type EipStatus = NonNullable<EipClaim['status']>;
/** A recorded cloud call of a claim. */
export type EipIntent = NonNullable<EipStatus['intents']>[number];
/** Phase of a claim. */
export type EipPhase = NonNullable<EipStatus['phase']>;

/** Location of a Pod's address. */
export type EipTarget = { readonly nodeName: string; readonly eniId: string; readonly ip: string };

/** A live Pod, with the fields that its EIP depends on. */
export type EipPod = {
  readonly uid: string;
  /** Present value of its annotation. */
  readonly publicIp: string | undefined;
  readonly isLeaving: boolean;
  /** Undefined when it requests none. */
  readonly request: EipRequest | undefined;
  /** Why its request cannot be read. */
  readonly requestFault: string | undefined;
  /** Retention time of its EIP, as the Pod's annotation contains it. */
  readonly claimExpired: string | undefined;
  /** Undefined while its address is unknown, or not on an ENI. */
  readonly target: EipTarget | undefined;
  /** The object that the claim ends with; only with --enable-ownerref. */
  readonly workload?: PodOwner;
};

/** EIPs as the cloud described them. */
export type EipSnapshot = {
  readonly byId: ReadonlyMap<string, Eip>;
  /** EIPs that were allocated for this claim, by their tags; in the order of their ids. */
  readonly made: readonly Eip[];
  /** EIPs of other claims: the key of the claim by the id of the EIP. */
  readonly rivals: ReadonlyMap<string, string>;
};

/** Everything that a decision about one claim depends on. */
export type EipView = {
  /** `namespace/name` of Pod and claim. */
  readonly key: string;
  readonly clusterId: string;
  /** Undefined when the Pod is deleted or finished. */
  readonly pod: EipPod | undefined;
  readonly claim: EipClaim | undefined;
  /** Undefined until the cloud was described in this reconcile. */
  readonly snapshot: EipSnapshot | undefined;
  /** Whether a claim that waits for nothing is to be compared with the cloud. */
  readonly needsComparison: boolean;
  /** Limit of EIPs on the Pod's node, and how many other claims have there. */
  readonly capacity: { readonly limit: number | undefined; readonly used: number };
  /** Why nothing may be allocated now: the quota is used up. */
  readonly allocationRefusal: { readonly message: string; readonly afterMs: number } | undefined;
  /** Milliseconds since the epoch: for what is written into objects. */
  readonly nowMs: number;
  /** Milliseconds since `status.retainedSince` of the claim, by a {@link StampAges}; 0 while it is not retained. */
  readonly retainedForMs: number;
  /** How long an EIP is retained if its claim contains no time, milliseconds; 0: without limit. */
  readonly claimExpiredMs: number;
};

/** An event that is recorded with a step. */
export type EipNote = {
  readonly type: 'Normal' | 'Warning';
  readonly reason: IpamdEventReason;
  readonly message: string;
};

/** A call that is to be recorded and sent. */
export type EipCall =
  | { readonly action: 'AllocateAddresses'; readonly allocation: number }
  | { readonly action: 'AssociateAddress'; readonly eipId: string; readonly eniId: string; readonly ip: string }
  | { readonly action: 'DisassociateAddress' | 'ReleaseAddresses'; readonly eipId: string };

/** Result of one decision about a claim; every kind but `rest` is followed by another decision. */
export type EipStep =
  /** The claim is created, with its finalizer. */
  | { readonly kind: 'create'; readonly spec: EipSpec; readonly workload?: PodOwner }
  /** These EIPs are described, and those that were allocated for the claim. */
  | { readonly kind: 'look'; readonly eipIds: readonly string[] }
  /** One guarded write. `isEnding`: the Pod is read from the API server first, because the step cannot be undone. */
  | {
      readonly kind: 'write';
      readonly spec?: EipSpec;
      readonly status: EipStatus;
      readonly note?: EipNote;
      readonly isEnding?: true;
    }
  /** One guarded write records the call; then it is sent. */
  | { readonly kind: 'begin'; readonly status: EipStatus; readonly call: EipCall }
  /** The outcome of a recorded call is resolved. */
  | { readonly kind: 'resolve'; readonly intent: EipIntent }
  /** The Pod's annotation is written, or removed. */
  | { readonly kind: 'annotate'; readonly publicIp: string | undefined }
  /** The claim has nothing in the cloud any more: finalizer and claim are deleted. */
  | { readonly kind: 'finish' }
  /** Nothing to do until something changes, or until `afterMs`. */
  | { readonly kind: 'rest'; readonly afterMs?: number; readonly note?: EipNote };

/** Nothing to do until something changes. */
export const REST: EipStep = { kind: 'rest' };

/** States of an EIP between two others. */
export const TRANSITIONAL_STATES: readonly string[] = ['CREATING', 'BINDING', 'UNBINDING'];
/** States of an EIP that is being released. */
export const RELEASING_STATES: readonly string[] = ['OFFLINING'];

/** Reports whether a Pod requests an EIP, also when the request is malformed. */
export function requestsEip({ annotations }: Pick<PodFacts, 'annotations'>): boolean {
  return annotations[POD_ANNOTATION.eipAttributes] !== undefined || annotations[POD_ANNOTATION.eipIdList] !== undefined;
}

/** Reads a Pod's request and finds the location of its address. `status`: of its node's NodeENIConfig. */
export function buildEipPod(pod: PodFacts, status: NodeEniConfigStatus | undefined): EipPod {
  const faults = new Faults();
  const request = readEipRequest(pod.annotations, faults);
  const [first] = faults.list;
  const expired = pod.annotations[POD_ANNOTATION.claimExpiredDuration];
  const isReadable = expired !== undefined && readClaimExpiry(expired.trim(), '', new Faults()) !== undefined;
  return {
    uid: pod.uid,
    publicIp: pod.annotations[POD_ANNOTATION.eipPublicIp],
    isLeaving: pod.isLeaving,
    request,
    requestFault: first === undefined ? undefined : renderFault(first),
    claimExpired: isReadable ? expired.trim() : undefined,
    target: targetOf(pod, status),
  };
}

/**
 * Finds the location of the Pod's IPv4 address. An EIP is bound to an address of a shared ENI, or to the only one of an
 * exclusive ENI.
 */
function targetOf(pod: PodFacts, status: NodeEniConfigStatus | undefined): EipTarget | undefined {
  const ip = pod.ips.find((one) => !one.includes(':'));
  if (ip === undefined) return undefined;
  for (const eni of status?.eniInfos ?? []) {
    if (eni.state !== 'Attached') continue;
    const isExclusive = eni.mode === 'direct-eni' && eni.primaryIP === ip && mayUse(eni.claim, pod);
    const address = (eni.addresses ?? []).find((one) => one.ip === ip && one.state === 'Assigned');
    if (isExclusive || (address !== undefined && mayUse(address.claim, pod))) {
      return { nodeName: pod.nodeName, eniId: eni.eniID, ip };
    }
  }
  return undefined;
}

/** Reports whether the Pod may use the address: a static one only with the Pod's uid in its mark. */
function mayUse(mark: { readonly uid?: string } | undefined, pod: PodFacts): boolean {
  return mark === undefined || mark.uid === runtimeUidOf(pod);
}
