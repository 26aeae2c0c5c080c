import type { Eip } from '../../cloud/cloud.ts';
import type { EipClaim } from '../../crd/eip-claim.ts';
import { decideLentEip, holderOf, refusalOf } from './decide-lent-eip.ts';
import { inPhase, withoutBinding, withoutEip } from './eip-status.ts';
import {
  type EipNote,
  type EipPhase,
  type EipPod,
  type EipSight,
  type EipStatus,
  type EipStep,
  type EipTarget,
  type EipView,
  IS_GOING,
  IS_MOVING,
} from './eip-view.ts';

/** A wait whose end is not notified is checked again after this. */
const LOOK_AGAIN_MS = 30_000;
/** A change in the cloud takes a moment. */
const MOVING_MS = 1_000;

/** Decides for a claim whose Pod is alive: it gets an EIP, and the EIP is bound to the Pod's address. */
export function decideHolding(view: EipView, claim: EipClaim, pod: EipPod): EipStep {
  const status = claim.status ?? {};
  const { target } = pod;
  if (target === undefined) return waitForAddress(view, claim);
  if (status.eipID === undefined) return decideGetting(view, claim, target);
  const isAtRest = status.phase === 'Bound' && status.privateIP === target.ip && status.eniID === target.eniId;
  if (isAtRest && !view.isDoubted) return { kind: 'rest' };
  if (view.sight === undefined) return { kind: 'look', eipIds: [status.eipID] };
  return decideBinding(view, claim, view.sight, target);
}

/** Waits for the Pod's address: it does not exist yet, or is being moved to another ENI. */
function waitForAddress(view: EipView, claim: EipClaim): EipStep {
  const { status = {}, spec = {} } = claim;
  if (status.phase === 'Bound') return { kind: 'rest', afterMs: LOOK_AGAIN_MS };
  const { eipID, privateIP } = status;
  // The address of the former Pod may soon be assigned to another Pod.
  if (eipID !== undefined && privateIP !== undefined) {
    if (view.sight === undefined) return { kind: 'look', eipIds: [eipID] };
    const eip = view.sight.byId.get(eipID);
    if (eip !== undefined && IS_MOVING.includes(eip.status)) return { kind: 'rest', afterMs: MOVING_MS };
    const isThere = eip !== undefined && isBoundTo(eip, status.eniID ?? '', privateIP);
    if (isThere && mayTouch(view.sight, spec.eipIDs, eipID)) {
      return { kind: 'begin', status, call: { action: 'DisassociateAddress', eipId: eipID } };
    }
    return { kind: 'write', status: withoutBinding(status) };
  }
  const why = { reason: 'WaitingForAddress', message: 'the Pod has no address on an attached ENI yet' };
  const phase = status.eipID === undefined ? 'Pending' : 'Binding';
  return held(view, status, phase, why.reason, why.message, LOOK_AGAIN_MS);
}

function decideGetting(view: EipView, claim: EipClaim, target: EipTarget): EipStep {
  const { status = {}, spec = {} } = claim;
  const { limit, used } = view.room;
  if (limit !== undefined && used >= limit) {
    const message = `node ${target.nodeName} may have ${limit} EIPs for Pods, and has ${used}; the Pod waits for one to be free`;
    return held(view, status, 'Pending', 'EIPLimitOfNode', message, LOOK_AGAIN_MS, 'EIPLimitOfNode');
  }
  const lent = spec.eipIDs ?? [];
  if (view.sight === undefined) return { kind: 'look', eipIds: lent };
  if (lent.length > 0) return decideLent(view, status, lent, view.sight, target);
  const made = view.sight.made.find((eip) => !IS_GOING.includes(eip.status) && !view.sight?.rivals.has(eip.eipId));
  if (made !== undefined) return taken(view, status, made, true, target);
  if (view.allocationRefusal !== undefined) {
    const { message, afterMs } = view.allocationRefusal;
    return held(view, status, 'Pending', 'EIPQuota', message, afterMs);
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

function decideLent(
  view: EipView,
  status: EipStatus,
  lent: readonly string[],
  sight: EipSight,
  target: EipTarget,
): EipStep {
  const choice = decideLentEip(view.key, lent, sight, target);
  if (choice.kind === 'chosen') return taken(view, status, choice.eip, false, target);
  const message = `none of the EIPs that the Pod names can be had: ${choice.message}`;
  return held(view, status, 'Failed', 'EIPNotFree', message, LOOK_AGAIN_MS, 'EIPNotFree');
}

/** Assigns an EIP to the claim in one write; binding is the next step. */
function taken(view: EipView, status: EipStatus, eip: Eip, isOurs: boolean, target: EipTarget): EipStep {
  const next = { ...status, eipID: eip.eipId, publicIP: eip.publicIp, isOurs, nodeName: target.nodeName };
  const why = { reason: 'Binding', message: `${eip.eipId} is being bound` };
  return { kind: 'write', status: inPhase(next, 'Binding', why, view.nowMs) };
}

function decideBinding(view: EipView, claim: EipClaim, sight: EipSight, target: EipTarget): EipStep {
  const { status = {}, spec = {} } = claim;
  const eipId = status.eipID ?? '';
  const eip = sight.byId.get(eipId);
  if (eip === undefined || IS_GOING.includes(eip.status)) return lost(view, status, eipId);
  if (IS_MOVING.includes(eip.status)) return { kind: 'rest', afterMs: MOVING_MS };
  if (eip.status === 'UNBIND') return bind(view, status, eipId, eip, target);
  if (isBoundTo(eip, target.eniId, target.ip)) return bound(view, status, eip, target);
  // A binding that ipamd made to a former address of the Pod may be unbound by ipamd; any other may not.
  const isOwnBinding = status.privateIP !== undefined && isBoundTo(eip, status.eniID ?? '', status.privateIP);
  if (isOwnBinding && mayTouch(sight, spec.eipIDs, eipId)) {
    const why = { reason: 'Binding', message: `${eipId} is unbound from ${eip.privateIp}, which the Pod has no more` };
    const next = inPhase(status, 'Binding', why, view.nowMs);
    return { kind: 'begin', status: next, call: { action: 'DisassociateAddress', eipId } };
  }
  // A listed EIP that is bound elsewhere is given up for another one of the list, if the Pod names more.
  if (status.isOurs === false && refusalOf(eipId, eip, sight, target) !== undefined) {
    return given(view, status, `${eipId} is ${holderOf(eip)}`);
  }
  const message = `${eipId} is ${holderOf(eip)}, and not by ipamd; unbind it there, or delete the Pod`;
  return held(view, status, 'Failed', 'EIPBoundElsewhere', message, LOOK_AGAIN_MS, 'EIPNotFree');
}

/** Tells whether the EIP belongs to the claim, allocated or listed, and to no other claim. */
function mayTouch({ made, rivals }: EipSight, lent: readonly string[] = [], eipId: string): boolean {
  return (made.some((one) => one.eipId === eipId) || lent.includes(eipId)) && !rivals.has(eipId);
}

function isBoundTo(eip: Eip, eniId: string, ip: string): boolean {
  return eip.eniId === eniId && eip.privateIp === ip;
}

function bind(view: EipView, status: EipStatus, eipId: string, eip: Eip, target: EipTarget): EipStep {
  const { limit, used } = view.room;
  if (limit !== undefined && used >= limit) {
    const message = `node ${target.nodeName} may have ${limit} EIPs for Pods, and has ${used}; ${eipId} waits`;
    return held(view, status, 'Binding', 'EIPLimitOfNode', message, LOOK_AGAIN_MS, 'EIPLimitOfNode');
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

/** Starts the claim anew after its EIP was released by another client. */
function lost(view: EipView, status: EipStatus, eipId: string): EipStep {
  const message = `${eipId} does not exist any more; another is looked for`;
  const next = inPhase(withoutEip(status), 'Pending', { reason: 'EIPGone', message }, view.nowMs);
  return { kind: 'write', status: next, note: { type: 'Warning', reason: 'EIPGone', message } };
}

function given(view: EipView, status: EipStatus, message: string): EipStep {
  const next = inPhase(withoutEip(withoutBinding(status)), 'Pending', { reason: 'EIPNotFree', message }, view.nowMs);
  return {
    kind: 'write',
    status: next,
    note: { type: 'Warning', reason: 'EIPNotFree', message: `${message}: given up` },
  };
}

/** Waits and reports why; writes only when that changed. */
function held(
  view: EipView,
  status: EipStatus,
  phase: EipPhase,
  reason: string,
  message: string,
  afterMs: number,
  told?: EipNote['reason'],
): EipStep {
  const next = inPhase(status, phase, { reason, message }, view.nowMs);
  if (next === status) return { kind: 'rest', afterMs };
  const note: EipNote | undefined = told === undefined ? undefined : { type: 'Warning', reason: told, message };
  return { kind: 'write', status: next, ...(note === undefined ? {} : { note }) };
}
