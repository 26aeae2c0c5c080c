import type { Eip } from '../../cloud/cloud.ts';
import type { EipClaim } from '../../crd/eip-claim.ts';
import { holderOf } from './decide-lent-eip.ts';
import { isMadeFor } from './eip-identity.ts';
import { inPhase, instantOf, withoutBinding, withoutEip } from './eip-status.ts';
import { type EipSight, type EipStatus, type EipStep, type EipView, IS_GOING, IS_MOVING } from './eip-view.ts';

const MOVING_MS = 1_000;

/**
 * Decides for a claim without a Pod: the EIP is unbound from the Pod's address, and retained or released.
 * An EIP that is bound to a resource that ipamd did not bind it to belongs to another user and stays unchanged. Only an
 * EIP whose tags in the cloud show that it was allocated for this claim is released, whatever the claim contains.
 */
export function decideLeavingEip(view: EipView, claim: EipClaim, fate: 'keep' | 'end'): EipStep {
  const { status = {} } = claim;
  if (fate === 'end' && status.phase !== 'Releasing') {
    const why = { reason: 'Releasing', message: 'the Pod is gone, or asks for no EIP any more' };
    return { kind: 'write', status: inPhase(status, 'Releasing', why, view.nowMs), isEnding: true };
  }
  const { eipID } = status;
  if (eipID === undefined && (status.allocations ?? 0) === 0) return { kind: 'finish' };
  if (view.sight === undefined) return { kind: 'look', eipIds: eipID === undefined ? [] : [eipID] };
  const eip = eipID === undefined ? madeAndFree(view.sight) : view.sight.byId.get(eipID);
  if (eip === undefined || eip.status === 'OFFLINING') return fate === 'end' ? { kind: 'finish' } : gone(view, status);
  // The id never reached the claim; the tags show that the EIP belongs to it.
  if (eipID === undefined) {
    return { kind: 'write', status: { ...status, eipID: eip.eipId, publicIP: eip.publicIp, isOurs: true } };
  }
  if (IS_MOVING.includes(eip.status)) return { kind: 'rest', afterMs: MOVING_MS };
  if (eip.status !== 'UNBIND') return unbind(view, claim, eip, view.sight, fate);
  return fate === 'keep' ? retained(view, claim, eip) : release(view, status, eip);
}

function madeAndFree({ made, rivals }: EipSight): Eip | undefined {
  return made.find((eip) => !IS_GOING.includes(eip.status) && !rivals.has(eip.eipId));
}

function unbind(view: EipView, claim: EipClaim, eip: Eip, sight: EipSight, fate: 'keep' | 'end'): EipStep {
  const { status = {}, spec = {} } = claim;
  const isOwnBinding = eip.privateIp === status.privateIP && eip.eniId === status.eniID;
  const mayTouch = isMadeFor(eip, view.clusterId, view.key) || (spec.eipIDs ?? []).includes(eip.eipId);
  if (isOwnBinding && mayTouch && !sight.rivals.has(eip.eipId)) {
    return { kind: 'begin', status, call: { action: 'DisassociateAddress', eipId: eip.eipId } };
  }
  if (fate === 'keep' && mayTouch) return retained(view, claim, eip);
  return leave(view, status, `${eip.eipId} is ${holderOf(eip)}, and not by ipamd for this Pod: it is left there`);
}

function release(view: EipView, status: EipStatus, eip: Eip): EipStep {
  if (status.isOurs !== true) return { kind: 'write', status: withoutEip(withoutAllocations(status)) };
  if (isMadeFor(eip, view.clusterId, view.key)) {
    return { kind: 'begin', status, call: { action: 'ReleaseAddresses', eipId: eip.eipId } };
  }
  return leave(view, status, `${eip.eipId} has not the tags of an EIP that was made for this Pod: it is not released`);
}

function leave(view: EipView, status: EipStatus, message: string): EipStep {
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
function gone(view: EipView, status: EipStatus): EipStep {
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
