import type { VpcIp } from '../../../crd/vpc-ip.ts';
import type { VpcIpClaim } from '../../../crd/vpc-ip-claim.ts';
import type { ClaimRequest } from '../../decide/claim-request.ts';
import type { IpamdEventReason } from '../../events/event-reasons.ts';
import type { AddressConflict } from './claim-view.ts';

/** State of a claim; the reason of its condition Ready. */
export type ClaimReason =
  | 'AddressBound'
  | 'AddressRetained'
  | 'AddressReleasing'
  | 'AddressAwaited'
  | 'NodeFull'
  | 'HandOver'
  | 'PodUnscheduled'
  | 'AddressTaken'
  | 'AddressElsewhere'
  | 'AddressPoolExhausted'
  | 'StaticIPDisabled'
  | 'ClaimInUse'
  | 'ClaimInvalid';

type ClaimSpec = VpcIpClaim['spec'];
type ClaimStatus = NonNullable<VpcIpClaim['status']>;

/** Desired state of a claim: ipamd's fields, those that are to be absent included. */
export type DesiredClaim = {
  readonly spec: {
    readonly podUID: string | undefined;
    readonly mode: ClaimSpec['mode'];
    readonly workload: ClaimSpec['workload'];
    readonly deletePolicy: ClaimSpec['deletePolicy'];
    readonly claimExpiredDuration: string | undefined;
    readonly nominatedIP: string | undefined;
    readonly nominatedSubnetIDs: readonly string[] | undefined;
  };
  readonly status: {
    readonly phase: ClaimStatus['phase'];
    readonly vpcIPs: readonly string[] | undefined;
    readonly ips: readonly string[] | undefined;
    readonly eniID: string | undefined;
    readonly nodeName: string | undefined;
    readonly lastPod: ClaimStatus['lastPod'];
    readonly retainedSince: string | undefined;
    readonly message: string | undefined;
  };
  readonly reason: ClaimReason;
  readonly conflict: AddressConflict | undefined;
  /** Whether the address is in the annotation of its Pod; absent: the Pod is on no super node. */
  readonly published?: { readonly isPublished: boolean; readonly message: string };
};

/** Desired state of a VpcIP. */
export type DesiredVip = {
  readonly ip: string;
  readonly podUid: string | undefined;
  readonly subnetId: string | undefined;
  readonly nodeName: string | undefined;
  readonly phase: NonNullable<NonNullable<VpcIp['status']>['phase']>;
  readonly eniId: string | undefined;
  readonly assignmentId: string | undefined;
  readonly message: string | undefined;
  readonly conflict: AddressConflict | undefined;
};

/** One write of a claim; `finish` removes ipamd's finalizer. */
export type ClaimWrite =
  | { readonly kind: 'create' | 'put'; readonly desired: DesiredClaim }
  | { readonly kind: 'delete'; readonly why: string }
  | { readonly kind: 'finish' };

/** One write of a VpcIP; `end` deletes it and removes ipamd's finalizer. */
export type VipWrite =
  | { readonly kind: 'put'; readonly desired: DesiredVip; readonly vip: VpcIp | undefined }
  | { readonly kind: 'end'; readonly vip: VpcIp };

/** Something that is reported to people when it begins: on the VpcIP that it is about, else on the Pod. */
export type ClaimNotice = {
  readonly reason: IpamdEventReason;
  readonly message: string;
  readonly vip?: { readonly name: string; readonly uid?: string };
};

/**
 * What is to be done for one claim. The writes are made in order: the claim first, except that a VpcIP that reserves an
 * address is written before it. The requests are valid only once all writes are done.
 */
export type ClaimDecision = {
  readonly claim: ClaimWrite | undefined;
  readonly vips: readonly VipWrite[];
  /** By node. */
  readonly requests: ReadonlyMap<string, ClaimRequest>;
  readonly notices: readonly ClaimNotice[];
  /** Checked again after this in any case. */
  readonly recheckMs: number | undefined;
};
