import type { EipClaim } from '../../../crd/eip-claim.ts';
import { readClaimExpiry } from '../../../crd/pod-network-request.ts';
import { Faults } from '../../../runtime/decode.ts';
import { decideLeavingEip } from './decide-leaving-eip.ts';
import { decideServingEip } from './decide-serving-eip.ts';
import { inPhase, isListed, isSameStatus } from './eip-status.ts';
import { type EipPod, type EipSpec, type EipStep, type EipView, REST } from './eip-view.ts';

/**
 * Decides the next step for the EIP of one Pod.
 *
 * ```
 *            Pod requests        has an address         EIP exists         bound
 * (no claim) -------> Pending -----------------> Allocating -> Binding ----------> Bound
 *                        ^ \--- a free one of eip-id-list --------^                  |
 *                        |                                               Pod deleted |
 *   next Pod of the name |        policy Never, EIP unbound                          |
 *                        +------------ Retained <------------------------------------+
 *                                         | expired, deleted                         | else
 *                                         +------------> Releasing <-----------------+
 *                                                            | unbound, released if ipamd allocated it
 *                                                            v
 *                                                         (no claim)
 * ```
 * Failed is entered from Pending and Binding: a person has to act, and it is checked again periodically.
 */
export function decideEip(view: EipView): EipStep {
  const step = decide(view);
  const { claim } = view;
  // A state that is up to date needs no write and no further check.
  const isUpToDate = step.kind === 'write' && claim !== undefined && isSameStatus(step.status, claim.status ?? {});
  return isUpToDate && (step.spec === undefined || isSameStatus(step.spec, claim.spec ?? {})) ? REST : step;
}

function decide(view: EipView): EipStep {
  const { claim, pod } = view;
  if (claim === undefined) return pod === undefined ? REST : decideCreation(pod);
  const [intent] = claim.status?.intents ?? [];
  if (intent !== undefined) return { kind: 'resolve', intent };
  const disposition = dispositionOf(view, claim);
  const desiredIp = disposition === 'serve' && claim.status?.phase === 'Bound' ? claim.status.publicIP : undefined;
  // A deleted or finished Pod is undefined here: its annotation is not written.
  if (pod !== undefined && pod.publicIp !== desiredIp) return { kind: 'annotate', publicIp: desiredIp };
  switch (disposition) {
    case 'serve':
      return pod === undefined ? REST : decideServingEip(view, claim, pod);
    case 'adopt':
      return pod === undefined ? REST : adopted(view, claim, pod);
    case 'keep':
      return decideRetaining(view, claim);
    case 'end':
      return decideLeavingEip(view, claim, 'end');
  }
}

function decideCreation(pod: EipPod): EipStep {
  if (pod.isLeaving) return REST;
  if (pod.requestFault !== undefined) {
    const message = `the EIP that the Pod asks for cannot be read, so it gets none: ${pod.requestFault}`;
    return { kind: 'rest', note: { type: 'Warning', reason: 'EIPInvalid', message } };
  }
  const spec = specOf(pod);
  const { workload } = pod;
  return spec === undefined ? REST : { kind: 'create', spec, ...(workload === undefined ? {} : { workload }) };
}

function specOf(pod: EipPod): EipSpec | undefined {
  const { request } = pod;
  if (request === undefined) return undefined;
  return {
    podUID: pod.uid,
    ...(request.eipIds.length === 0 ? {} : { eipIDs: [...request.eipIds] }),
    bandwidthMbps: request.bandwidthMbps,
    isp: request.isp,
    chargeType: request.chargeType,
    ...(request.bandwidthPackageId === undefined ? {} : { bandwidthPackageID: request.bandwidthPackageId }),
    deletePolicy: request.isRetained ? 'Never' : 'Immediate',
    ...(pod.claimExpired === undefined ? {} : { claimExpiredDuration: pod.claimExpired }),
  };
}

type Disposition = 'serve' | 'adopt' | 'keep' | 'end';

/** Decides what becomes of a claim: it serves its Pod, the next Pod adopts it, it is retained, or it ends. */
function dispositionOf({ pod, retainedForMs, claimExpiredMs }: EipView, claim: EipClaim): Disposition {
  const { spec = {}, status = {}, metadata } = claim;
  // A claim that began to release may have lost its EIP already and cannot be used again.
  if (status.phase === 'Releasing') return 'end';
  const requestsEip = pod !== undefined && (pod.request !== undefined || pod.requestFault !== undefined);
  if (requestsEip && spec.podUID === pod.uid) return 'serve';
  const isDeleted = metadata.deletionTimestamp !== undefined;
  // A claim without a Pod is one that was retained: its EIP is looked for where the status does not name it.
  const isIdLost = status.eipID === undefined && spec.podUID === undefined;
  const isRetainable = spec.deletePolicy === 'Never' && !isDeleted && (status.eipID !== undefined || isIdLost);
  if (!isRetainable) return 'end';
  if (isIdLost) return 'keep';
  if (requestsEip && pod.request !== undefined && !pod.isLeaving) return isFitting(claim, pod) ? 'adopt' : 'end';
  return isExpired(claim, retainedForMs, claimExpiredMs) ? 'end' : 'keep';
}

/**
 * Reports whether a retained EIP suits the next Pod. A Pod that names EIPs accepts only those; a Pod that names none
 * accepts only an allocated one.
 */
function isFitting(claim: EipClaim, { request }: EipPod): boolean {
  if (request === undefined) return false;
  const { eipID = '' } = claim.status ?? {};
  return isListed(claim, eipID) ? request.eipIds.includes(eipID) : request.eipIds.length === 0;
}

function isExpired(claim: EipClaim, retainedForMs: number, claimExpiredMs: number): boolean {
  const lifeMs = retentionOf(claim, claimExpiredMs);
  return lifeMs !== undefined && retainedForMs >= lifeMs;
}

/** Returns how long an EIP is retained, milliseconds; undefined forever, and before it is retained. */
function retentionOf({ spec = {}, status = {} }: EipClaim, claimExpiredMs: number): number | undefined {
  if (status.phase !== 'Retained' || status.retainedSince === undefined) return undefined;
  const own = spec.claimExpiredDuration;
  const durationMs = own === undefined ? claimExpiredMs : (readClaimExpiry(own, '', new Faults()) ?? claimExpiredMs);
  return durationMs === 0 ? undefined : durationMs;
}

/** Lets the next Pod of the name take the claim over, with its own settings. The following steps change the binding. */
function adopted(view: EipView, claim: EipClaim, pod: EipPod): EipStep {
  const spec = specOf(pod);
  if (spec === undefined) return REST;
  const { retainedSince: _retainedSince, ...status } = claim.status ?? {};
  const why = { reason: 'WaitingForAddress', message: 'the next Pod of this name has no address on an ENI yet' };
  return { kind: 'write', spec, status: inPhase(status, 'Binding', why, view.nowMs) };
}

function decideRetaining(view: EipView, claim: EipClaim): EipStep {
  const { status = {}, spec = {} } = claim;
  const isAtRest = status.phase === 'Retained' && status.eipID !== undefined && spec.podUID === undefined;
  if (isAtRest && !view.needsComparison) {
    const lifeMs = retentionOf(claim, view.claimExpiredMs);
    return lifeMs === undefined ? REST : { kind: 'rest', afterMs: Math.max(1, lifeMs - view.retainedForMs) };
  }
  return decideLeavingEip(view, claim, 'keep');
}
