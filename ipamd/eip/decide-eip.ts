import type { EipClaim } from '../../crd/eip-claim.ts';
import { readClaimExpiry } from '../../crd/pod-wishes.ts';
import { Faults } from '../../runtime/decode.ts';
import { decideHolding } from './decide-holding.ts';
import { decideLeavingEip } from './decide-leaving-eip.ts';
import { inPhase, isSameStatus } from './eip-status.ts';
import { type EipPod, type EipSpec, type EipStep, type EipView, REST } from './eip-view.ts';

/**
 * Decides what happens next to the EIP of one Pod.
 *
 * ```
 *            Pod asks            has an address         EIP there          bound
 * (no claim) -------> Pending -----------------> Allocating -> Binding ----------> Bound
 *                        ^ \--- a chosen one of eip-id-list -----^                   |
 *                        |                                                  Pod gone |
 *   next Pod of the name |        policy Never, EIP unbound                         |
 *                        +------------ Retained <-----------------------------------+
 *                                         | expired, deleted                        | else
 *                                         +------------> Releasing <-----------------+
 *                                                            | unbound, released if ours
 *                                                            v
 *                                                         (no claim)
 * ```
 * Failed stands beside Pending and Binding: somebody has to do something, and it is looked at again now and then. Pure.
 */
export function decideEip(view: EipView): EipStep {
  const step = decide(view);
  const { claim } = view;
  // What is as it should be needs no write, and asks for no other look.
  const isSaid = step.kind === 'write' && claim !== undefined && isSameStatus(step.status, claim.status ?? {});
  return isSaid && (step.spec === undefined || isSameStatus(step.spec, claim.spec ?? {})) ? REST : step;
}

function decide(view: EipView): EipStep {
  const { claim, pod } = view;
  if (claim === undefined) return pod === undefined ? REST : decideCreation(pod);
  const [intent] = claim.status?.intents ?? [];
  if (intent !== undefined) return { kind: 'resolve', intent };
  const fate = fateOf(view, claim);
  const wanted = fate === 'serve' && claim.status?.phase === 'Bound' ? claim.status.publicIP : undefined;
  // The Pod has gone, or will not read it any more: there is nobody to tell.
  if (pod !== undefined && pod.publicIp !== wanted) return { kind: 'annotate', publicIp: wanted };
  switch (fate) {
    case 'serve':
      return pod === undefined ? REST : decideHolding(view, claim, pod);
    case 'adopt':
      return pod === undefined ? REST : adopted(view, claim, pod);
    case 'keep':
      return decideKeeping(view, claim);
    case 'end':
      return decideLeavingEip(view, claim, 'end');
  }
}

function decideCreation(pod: EipPod): EipStep {
  if (pod.isLeaving) return REST;
  if (pod.wishFault !== undefined) {
    const message = `the EIP that the Pod asks for cannot be read, so it gets none: ${pod.wishFault}`;
    return { kind: 'rest', note: { type: 'Warning', reason: 'EIPInvalid', message } };
  }
  const spec = specOf(pod);
  const { workload } = pod;
  return spec === undefined ? REST : { kind: 'create', spec, ...(workload === undefined ? {} : { workload }) };
}

function specOf(pod: EipPod): EipSpec | undefined {
  const { wish } = pod;
  if (wish === undefined) return undefined;
  return {
    podUID: pod.uid,
    ...(wish.eipIds.length === 0 ? {} : { eipIDs: [...wish.eipIds] }),
    bandwidthMbps: wish.bandwidthMbps,
    isp: wish.isp,
    chargeType: wish.chargeType,
    ...(wish.bandwidthPackageId === undefined ? {} : { bandwidthPackageID: wish.bandwidthPackageId }),
    deletePolicy: wish.isKept ? 'Never' : 'Immediate',
    ...(pod.claimExpired === undefined ? {} : { claimExpiredDuration: pod.claimExpired }),
  };
}

type Fate = 'serve' | 'adopt' | 'keep' | 'end';

/** What becomes of a claim: the Pod that has it, the next one, nobody for now, or nobody ever. */
function fateOf({ pod, nowMs, claimExpiredMs }: EipView, claim: EipClaim): Fate {
  const { spec = {}, status = {}, metadata } = claim;
  // What was given up once is gone in part: no way back.
  if (status.phase === 'Releasing') return 'end';
  const isAsking = pod !== undefined && (pod.wish !== undefined || pod.wishFault !== undefined);
  if (isAsking && spec.podUID === pod.uid) return 'serve';
  const isDeleted = metadata.deletionTimestamp !== undefined;
  const isKept = spec.deletePolicy === 'Never' && !isDeleted && status.eipID !== undefined;
  if (!isKept) return 'end';
  if (isAsking && pod.wish !== undefined && !pod.isLeaving) return isFitting(claim, pod) ? 'adopt' : 'end';
  return isExpired(claim, nowMs, claimExpiredMs) ? 'end' : 'keep';
}

/** A next Pod that names EIPs gets none that was made, nor one that it does not name; one that names none gets none lent. */
function isFitting({ status = {} }: EipClaim, { wish }: EipPod): boolean {
  if (wish === undefined) return false;
  if (status.isOurs === true) return wish.eipIds.length === 0;
  return status.eipID !== undefined && wish.eipIds.includes(status.eipID);
}

function isExpired(claim: EipClaim, nowMs: number, claimExpiredMs: number): boolean {
  const atMs = expiryOf(claim, claimExpiredMs);
  return atMs !== undefined && nowMs >= atMs;
}

/** When a kept EIP is given up, milliseconds since the epoch; undefined for never, and before it is kept. */
function expiryOf({ spec = {}, status = {} }: EipClaim, claimExpiredMs: number): number | undefined {
  if (status.phase !== 'Retained' || status.retainedSince === undefined) return undefined;
  const own = spec.claimExpiredDuration;
  const durationMs = own === undefined ? claimExpiredMs : (readClaimExpiry(own, '', new Faults()) ?? claimExpiredMs);
  return durationMs === 0 ? undefined : Date.parse(status.retainedSince) + durationMs;
}

/** The next Pod of the name takes the claim over, with what it wants of it. What it is bound to is seen next. */
function adopted(view: EipView, claim: EipClaim, pod: EipPod): EipStep {
  const spec = specOf(pod);
  if (spec === undefined) return REST;
  const { retainedSince: _retainedSince, ...status } = claim.status ?? {};
  const why = { reason: 'WaitingForAddress', message: 'the next Pod of this name has no address on an ENI yet' };
  return { kind: 'write', spec, status: inPhase(status, 'Binding', why, view.nowMs) };
}

function decideKeeping(view: EipView, claim: EipClaim): EipStep {
  const { status = {}, spec = {} } = claim;
  if (status.phase === 'Retained' && spec.podUID === undefined && !view.isDoubted) {
    const atMs = expiryOf(claim, view.claimExpiredMs);
    return atMs === undefined ? REST : { kind: 'rest', afterMs: Math.max(1, atMs - view.nowMs) };
  }
  return decideLeavingEip(view, claim, 'keep');
}
