import type { Eip } from '../../../cloud/cloud.ts';
import type { EipClaim } from '../../../crd/eip-claim.ts';
import { bindingText, decideListedEip, refusalOf } from './decide-listed-eip.ts';
import { inPhase, withoutBinding, withoutEip } from './eip-status.ts';
import {
  type EipNote,
  type EipPhase,
  type EipPod,
  type EipSnapshot,
  type EipStatus,
  type EipStep,
  type EipTarget,
  type EipView,
  RELEASING_STATES,
  TRANSITIONAL_STATES,
} from './eip-view.ts';

/** A wait whose end is not notified is checked again after this. */
const RECHECK_MS = 30_000;
/** A change in the cloud takes a moment. */
const TRANSITION_RECHECK_MS = 1_000;

/** Decides for a claim whose Pod is alive: it gets an EIP, and the EIP is bound to the Pod's address. */
export function decideServingEip(view: EipView, claim: EipClaim, pod: EipPod): EipStep {
  const status = claim.status ?? {};
  const { target } = pod;
  if (target === undefined) return waitForAddress(view, claim);
  if (status.eipID === undefined) return decideAcquiring(view, claim, target);
  const isAtRest = status.phase === 'Bound' && status.privateIP === target.ip && status.eniID === target.eniId;
  if (isAtRest && !view.needsComparison) return { kind: 'rest' };
  if (view.snapshot === undefined) return { kind: 'look', eipIds: [status.eipID] };
  return decideBinding(view, claim, view.snapshot, target);
}

/** Waits for the Pod's address: it does not exist yet, or is being moved to another ENI. */
function waitForAddress(view: EipView, claim: EipClaim): EipStep {
  const { status = {}, spec = {} } = claim;
  if (status.phase === 'Bound') return { kind: 'rest', afterMs: RECHECK_MS };
  const { eipID, privateIP } = status;
  // The address of the former Pod may soon be assigned to another Pod.
  if (eipID !== undefined && privateIP !== undefined) {
    if (view.snapshot === undefined) return { kind: 'look', eipIds: [eipID] };
    const eip = view.snapshot.byId.get(eipID);
    if (eip !== undefined && TRANSITIONAL_STATES.includes(eip.status))
      return { kind: 'rest', afterMs: TRANSITION_RECHECK_MS };
    const isThere = eip !== undefined && isBoundTo(eip, status.eniID ?? '', privateIP);
    if (isThere && belongsToClaim(view.snapshot, spec.eipIDs, eipID)) {
      return { kind: 'begin', status, call: { action: 'DisassociateAddress', eipId: eipID } };
    }
    return { kind: 'write', status: withoutBinding(status) };
  }
  const why = { reason: 'WaitingForAddress', message: 'the Pod has no address on an attached ENI yet' };
  const phase = status.eipID === undefined ? 'Pending' : 'Binding';
  return waitAndReport(view, status, phase, why.reason, why.message, RECHECK_MS);
}

function decideAcquiring(view: EipView, claim: EipClaim, target: EipTarget): EipStep {
  const { status = {}, spec = {} } = claim;
  const { limit, used } = view.capacity;
  if (limit !== undefined && used >= limit) {
    const message = `node ${target.nodeName} may have ${limit} EIPs for Pods, and has ${used}; the Pod waits for one to be free`;
    return waitAndReport(view, status, 'Pending', 'EIPLimitOfNode', message, RECHECK_MS, 'EIPLimitOfNode');
  }
  const listed = spec.eipIDs ?? [];
  if (view.snapshot === undefined) return { kind: 'look', eipIds: listed };
  if (listed.length > 0) return decideListed(view, status, listed, view.snapshot, target);
  const made = view.snapshot.made.find(
    (eip) => !RELEASING_STATES.includes(eip.status) && !view.snapshot?.rivals.has(eip.eipId),
  );
  if (made !== undefined) return withEip(view, status, made, true, target);
  if (view.allocationRefusal !== undefined) {
    const { message, afterMs } = view.allocationRefusal;
    return waitAndReport(view, status, 'Pending', 'EIPQuota', message, afterMs);
  }
  const allocation = (status.allocations ?? 0) + 1;
  const why = { reason: 'Allocating', message: 'an EIP is being allocated' };
  const next = inPhase(
    { ...status, allocations: allocation, nodeName: target.nodeName },
    'Allocating',
    why,
    view.nowMs,
  );
  return { kind: 'begin', status: next, call: { action: 'AllocateAddresses', allocation } };
}

function decideListed(
  view: EipView,
  status: EipStatus,
  listed: readonly string[],
  snapshot: EipSnapshot,
  target: EipTarget,
): EipStep {
  const choice = decideListedEip(view.key, listed, snapshot, target);
  if (choice.kind === 'chosen') return withEip(view, status, choice.eip, false, target);
  const message = `none of the EIPs that the Pod names is available: ${choice.message}`;
  return waitAndReport(view, status, 'Failed', 'EIPNotFree', message, RECHECK_MS, 'EIPNotFree');
}

/** Assigns an EIP to the claim in one write; binding is the next step. */
function withEip(view: EipView, status: EipStatus, eip: Eip, isOurs: boolean, target: EipTarget): EipStep {
  const next = { ...status, eipID: eip.eipId, publicIP: eip.publicIp, isOurs, nodeName: target.nodeName };
  const why = { reason: 'Binding', message: `${eip.eipId} is being bound` };
  return { kind: 'write', status: inPhase(next, 'Binding', why, view.nowMs) };
}

function decideBinding(view: EipView, claim: EipClaim, snapshot: EipSnapshot, target: EipTarget): EipStep {
  const { status = {}, spec = {} } = claim;
  const eipId = status.eipID ?? '';
  const eip = snapshot.byId.get(eipId);
  if (eip === undefined || RELEASING_STATES.includes(eip.status)) return replaceLostEip(view, status, eipId);
  if (TRANSITIONAL_STATES.includes(eip.status)) return { kind: 'rest', afterMs: TRANSITION_RECHECK_MS };
  if (eip.status === 'UNBIND') return bind(view, status, eipId, eip, target);
  if (isBoundTo(eip, target.eniId, target.ip)) return bound(view, status, eip, target);
  // A binding that ipamd made to a former address of the Pod may be unbound by ipamd; any other may not.
  const isOwnBinding = status.privateIP !== undefined && isBoundTo(eip, status.eniID ?? '', status.privateIP);
  if (isOwnBinding && belongsToClaim(snapshot, spec.eipIDs, eipId)) {
    const why = {
      reason: 'Binding',
      message: `${eipId} is unbound from ${eip.privateIp}, which is no longer the Pod's address`,
    };
    const next = inPhase(status, 'Binding', why, view.nowMs);
    return { kind: 'begin', status: next, call: { action: 'DisassociateAddress', eipId } };
  }
  // A listed EIP that is bound elsewhere is given up for another one of the list, if the Pod names more.
  if (status.isOurs === false && refusalOf(eipId, eip, snapshot, target) !== undefined) {
    return giveUpEip(view, status, `${eipId} is ${bindingText(eip)}`);
  }
  const message = `${eipId} is ${bindingText(eip)}, and not by ipamd; unbind it there, or delete the Pod`;
  return waitAndReport(view, status, 'Failed', 'EIPBoundElsewhere', message, RECHECK_MS, 'EIPNotFree');
}

/** Reports whether the EIP belongs to the claim, allocated or listed, and to no other claim. */
function belongsToClaim({ made, rivals }: EipSnapshot, listed: readonly string[] = [], eipId: string): boolean {
  return (made.some((one) => one.eipId === eipId) || listed.includes(eipId)) && !rivals.has(eipId);
}

function isBoundTo(eip: Eip, eniId: string, ip: string): boolean {
  return eip.eniId === eniId && eip.privateIp === ip;
}

function bind(view: EipView, status: EipStatus, eipId: string, eip: Eip, target: EipTarget): EipStep {
  const { limit, used } = view.capacity;
  if (limit !== undefined && used >= limit) {
    const message = `node ${target.nodeName} may have ${limit} EIPs for Pods, and has ${used}; ${eipId} waits`;
    return waitAndReport(view, status, 'Binding', 'EIPLimitOfNode', message, RECHECK_MS, 'EIPLimitOfNode');
  }
  const to = { privateIP: target.ip, eniID: target.eniId, nodeName: target.nodeName };
  const why = { reason: 'Binding', message: `${eipId} is being bound to ${target.ip}` };
  const next = inPhase({ ...status, publicIP: eip.publicIp, ...to }, 'Binding', why, view.nowMs);
  return {
    kind: 'begin',
    status: next,
    call: { action: 'AssociateAddress', eipId, eniId: target.eniId, ip: target.ip },
  };
}

function bound(view: EipView, status: EipStatus, eip: Eip, target: EipTarget): EipStep {
  const to = { privateIP: target.ip, eniID: target.eniId, nodeName: target.nodeName };
  const next = inPhase({ ...status, publicIP: eip.publicIp, ...to }, 'Bound', { reason: 'Bound' }, view.nowMs);
  const message = `EIP ${eip.publicIp} (${eip.eipId}) is bound to ${target.ip}`;
  return { kind: 'write', status: next, note: { type: 'Normal', reason: 'EIPBound', message } };
}

/** Starts the claim again after its EIP was released by another client. */
function replaceLostEip(view: EipView, status: EipStatus, eipId: string): EipStep {
  const message = `${eipId} does not exist any more; another one is selected`;
  const next = inPhase(withoutEip(status), 'Pending', { reason: 'EIPGone', message }, view.nowMs);
  return { kind: 'write', status: next, note: { type: 'Warning', reason: 'EIPGone', message } };
}

function giveUpEip(view: EipView, status: EipStatus, message: string): EipStep {
  const next = inPhase(withoutEip(withoutBinding(status)), 'Pending', { reason: 'EIPNotFree', message }, view.nowMs);
  return {
    kind: 'write',
    status: next,
    note: { type: 'Warning', reason: 'EIPNotFree', message: `${message}: given up` },
  };
}

/** Waits and reports why; writes only when that changed. */
function waitAndReport(
  view: EipView,
  status: EipStatus,
  phase: EipPhase,
  reason: string,
  message: string,
  afterMs: number,
  eventReason?: EipNote['reason'],
): EipStep {
  const next = inPhase(status, phase, { reason, message }, view.nowMs);
  if (next === status) return { kind: 'rest', afterMs };
  const note: EipNote | undefined =
    eventReason === undefined ? undefined : { type: 'Warning', reason: eventReason, message };
  return { kind: 'write', status: next, ...(note === undefined ? {} : { note }) };
}
