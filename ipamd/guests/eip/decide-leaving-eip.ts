import type { Eip } from '../../../cloud/cloud.ts';
import type { EipClaim } from '../../../crd/eip-claim.ts';
import { bindingText } from './decide-listed-eip.ts';
import { isMadeFor } from './eip-identity.ts';
import { inPhase, instantOf, isListed, withoutBinding, withoutEip } from './eip-status.ts';
import {
  type EipSnapshot,
  type EipStatus,
  type EipStep,
  type EipView,
  RELEASING_STATES,
  TRANSITIONAL_STATES,
} from './eip-view.ts';

const TRANSITION_RECHECK_MS = 1_000;

/**
 * Decides for a claim without a Pod: the EIP is unbound from the Pod's address, and retained or released.
 * An EIP that is bound to a resource that ipamd did not bind it to belongs to another user and stays unchanged. Only an
 * EIP whose tags in the cloud show that it was allocated for this claim is released, whatever the claim contains.
 */
export function decideLeavingEip(view: EipView, claim: EipClaim, disposition: 'keep' | 'end'): EipStep {
  const { status = {} } = claim;
  if (disposition === 'end' && status.phase !== 'Releasing') {
    const why = { reason: 'Releasing', message: 'the Pod is gone, or asks for no EIP any more' };
    return { kind: 'write', status: inPhase(status, 'Releasing', why, view.nowMs), isEnding: true };
  }
  const { eipID } = status;
  if (eipID === undefined && (status.allocations ?? 0) === 0 && disposition === 'end') return { kind: 'finish' };
  if (view.snapshot === undefined) return { kind: 'look', eipIds: eipID === undefined ? [] : [eipID] };
  const eip = findEip(view, claim, view.snapshot, disposition);
  if (eip === undefined || eip.status === 'OFFLINING')
    return disposition === 'end' ? { kind: 'finish' } : endMissing(view, status);
  // The id never reached the claim, or was edited; the tags show that the EIP belongs to it.
  if (eip.eipId !== eipID) {
    return { kind: 'write', status: { ...status, eipID: eip.eipId, publicIP: eip.publicIp, isOurs: true } };
  }
  if (TRANSITIONAL_STATES.includes(eip.status)) return { kind: 'rest', afterMs: TRANSITION_RECHECK_MS };
  if (eip.status !== 'UNBIND') return unbind(view, claim, eip, view.snapshot, disposition);
  return disposition === 'keep' ? retained(view, claim, eip) : release(view, claim, eip);
}

/** Returns the EIP of a claim. A static one is not given up for a status that names another: the tags in the cloud decide. */
function findEip(view: EipView, claim: EipClaim, snapshot: EipSnapshot, disposition: 'keep' | 'end'): Eip | undefined {
  const { eipID } = claim.status ?? {};
  if (eipID === undefined) return madeAndFree(snapshot);
  const named = snapshot.byId.get(eipID);
  if (disposition === 'end' || (named !== undefined && mayTouch(view, claim, named))) return named;
  return madeAndFree(snapshot) ?? named;
}

/** Reports whether the EIP was allocated for the claim, or its Pods name it. */
function mayTouch({ clusterId, key }: EipView, claim: EipClaim, eip: Eip): boolean {
  return isMadeFor(eip, clusterId, key) || isListed(claim, eip.eipId);
}

function madeAndFree({ made, rivals }: EipSnapshot): Eip | undefined {
  return made.find((eip) => !RELEASING_STATES.includes(eip.status) && !rivals.has(eip.eipId));
}

function unbind(view: EipView, claim: EipClaim, eip: Eip, snapshot: EipSnapshot, disposition: 'keep' | 'end'): EipStep {
  const { status = {} } = claim;
  const isOwnBinding = eip.privateIp === status.privateIP && eip.eniId === status.eniID;
  const isAllowed = mayTouch(view, claim, eip);
  if (isOwnBinding && isAllowed && !snapshot.rivals.has(eip.eipId)) {
    return { kind: 'begin', status, call: { action: 'DisassociateAddress', eipId: eip.eipId } };
  }
  if (disposition === 'keep' && isAllowed) return retained(view, claim, eip);
  return leaveBound(
    view,
    status,
    `${eip.eipId} is ${bindingText(eip)}, and not by ipamd for this Pod: it is left there`,
  );
}

function release(view: EipView, claim: EipClaim, eip: Eip): EipStep {
  const { status = {} } = claim;
  if (isListed(claim, eip.eipId)) return { kind: 'write', status: withoutEip(withoutAllocations(status)) };
  if (isMadeFor(eip, view.clusterId, view.key)) {
    return { kind: 'begin', status, call: { action: 'ReleaseAddresses', eipId: eip.eipId } };
  }
  return leaveBound(
    view,
    status,
    `${eip.eipId} does not have the tags of an EIP that was allocated for this Pod: it is not released`,
  );
}

function leaveBound(view: EipView, status: EipStatus, message: string): EipStep {
  const why = { reason: 'EIPLeft', message };
  const next = inPhase(withoutEip(withoutAllocations(status)), 'Releasing', why, view.nowMs);
  return { kind: 'write', status: next, note: { type: 'Warning', reason: 'EIPLeft', message } };
}

/** Ends the search for allocated EIPs in the cloud. */
function withoutAllocations(status: EipStatus): EipStatus {
  const { allocations: _allocations, ...rest } = status;
  return rest;
}

/** Ends a claim whose retained EIP does not exist any more. */
function endMissing(view: EipView, status: EipStatus): EipStep {
  const message = `${status.eipID ?? 'the EIP'} does not exist any more`;
  const next = inPhase(withoutEip(status), 'Releasing', { reason: 'EIPGone', message }, view.nowMs);
  return { kind: 'write', status: next, note: { type: 'Warning', reason: 'EIPGone', message } };
}

function retained(view: EipView, claim: EipClaim, eip: Eip): EipStep {
  const { podUID: _podUID, ...spec } = claim.spec ?? {};
  const since = claim.status?.retainedSince ?? instantOf(view.nowMs);
  const status = { ...withoutBinding(claim.status ?? {}), publicIP: eip.publicIp, retainedSince: since };
  const why = { reason: 'Retained', message: 'kept for the next Pod of this name' };
  return { kind: 'write', spec, status: inPhase(status, 'Retained', why, view.nowMs) };
}
