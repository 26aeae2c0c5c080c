import type { Eip } from '../../cloud/cloud.ts';
import type { EipClaim } from '../../crd/eip-claim.ts';
import type { EipWish } from '../../crd/eip-wish.ts';
import type { IpamdEventReason } from '../event-reasons.ts';
import type { PodOwner } from '../records/pod-facts.ts';

/** The spec of a claim. */
export type EipSpec = NonNullable<EipClaim['spec']>;
/** The status of a claim. */
export type EipStatus = NonNullable<EipClaim['status']>;
/** A cloud call of a claim that is on record. */
export type EipIntent = NonNullable<EipStatus['intents']>[number];
/** Where a claim stands. */
export type EipPhase = NonNullable<EipStatus['phase']>;

/** Where a Pod's address is. */
export type EipTarget = { readonly nodeName: string; readonly eniId: string; readonly ip: string };

/** A living Pod, as far as its EIP is concerned. */
export type EipPod = {
  readonly uid: string;
  /** What stands in its annotation now. */
  readonly publicIp: string | undefined;
  readonly isLeaving: boolean;
  /** Undefined when it asks for none. */
  readonly wish: EipWish | undefined;
  /** Why what it asks for cannot be read. */
  readonly wishFault: string | undefined;
  /** How long its EIP is kept, as it says itself; milliseconds. */
  readonly claimExpired: string | undefined;
  /** Undefined while its address is not known, or not on an ENI. */
  readonly target: EipTarget | undefined;
  /** The object whose end is the claim's; only with --enable-ownerref. */
  readonly workload?: PodOwner;
};

/** What the cloud said when it was asked. */
export type EipSight = {
  readonly byId: ReadonlyMap<string, Eip>;
  /** EIPs that were made for this claim, by their tags; in the order of their ids. */
  readonly made: readonly Eip[];
  /** EIPs that other claims have, by id: the claim's key. */
  readonly rivals: ReadonlyMap<string, string>;
};

/** All that a decision about one claim hangs on. */
export type EipView = {
  /** `namespace/name` of Pod and claim. */
  readonly key: string;
  readonly clusterId: string;
  /** Undefined when the Pod is gone or over. */
  readonly pod: EipPod | undefined;
  readonly claim: EipClaim | undefined;
  /** Undefined until the cloud was asked in this turn. */
  readonly sight: EipSight | undefined;
  /** Whether a claim that is at rest is to be compared with the cloud. */
  readonly isDoubted: boolean;
  /** Most EIPs on the Pod's node, and how many other claims have there. */
  readonly room: { readonly limit: number | undefined; readonly used: number };
  /** Why nothing may be allocated now, for the quota is used up. */
  readonly allocationRefusal: { readonly message: string; readonly afterMs: number } | undefined;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** How long a kept EIP waits where its claim does not say, milliseconds; 0: for ever. */
  readonly claimExpiredMs: number;
};

/** What people are told with a step. */
export type EipNote = {
  readonly type: 'Normal' | 'Warning';
  readonly reason: IpamdEventReason;
  readonly message: string;
};

/** A call that is to be recorded and made. */
export type EipCall =
  | { readonly action: 'AllocateAddresses'; readonly allocation: number }
  | { readonly action: 'AssociateAddress'; readonly eipId: string; readonly eniId: string; readonly ip: string }
  | { readonly action: 'DisassociateAddress' | 'ReleaseAddresses'; readonly eipId: string };

/** What one look at a claim leads to; all but `rest` are followed by another look. */
export type EipStep =
  /** The claim is made, with its finalizer. */
  | { readonly kind: 'create'; readonly spec: EipSpec; readonly workload?: PodOwner }
  /** The cloud is asked for these EIPs, and for those that were made for the claim. */
  | { readonly kind: 'look'; readonly eipIds: readonly string[] }
  /** One guarded write. `isEnding`: the Pod is read from the API server first, for there is no way back. */
  | {
      readonly kind: 'write';
      readonly spec?: EipSpec;
      readonly status: EipStatus;
      readonly note?: EipNote;
      readonly isEnding?: true;
    }
  /** One guarded write puts the call on record; then it is made. */
  | { readonly kind: 'begin'; readonly status: EipStatus; readonly call: EipCall }
  /** It is found out what became of a call. */
  | { readonly kind: 'resolve'; readonly intent: EipIntent }
  /** The Pod's annotation is written, or taken off. */
  | { readonly kind: 'annotate'; readonly publicIp: string | undefined }
  /** Nothing is held any more: the finalizer goes, and the claim. */
  | { readonly kind: 'finish' }
  /** Nothing to do until something changes, or until `afterMs`. */
  | { readonly kind: 'rest'; readonly afterMs?: number; readonly note?: EipNote };

/** Nothing to do until something changes. */
export const REST: EipStep = { kind: 'rest' };

/** States in which an EIP is on its way to another. */
export const IS_MOVING: readonly string[] = ['CREATING', 'BINDING', 'UNBINDING'];
/** States of an EIP that is as good as gone. */
export const IS_GOING: readonly string[] = ['OFFLINING'];
