import type { Eip } from '../../../cloud/cloud.ts';
import { inPhase, withoutBinding, withoutEip } from './eip-status.ts';
import { type EipIntent, type EipSnapshot, type EipStatus, RELEASING_STATES, TRANSITIONAL_STATES } from './eip-view.ts';

/**
 * What a description shows about a call. `repeat`: not done, and the same ClientToken makes it safe to send it again.
 * `undone`: not done, and no request in flight could still do it.
 */
type EipOutcome =
  | { readonly kind: 'done'; readonly status: EipStatus }
  | { readonly kind: 'undone' }
  | { readonly kind: 'repeat' }
  | { readonly kind: 'moving' };

/** Evaluates from a description what became of a claim's call. */
export function evaluateEipOutcome(
  intent: EipIntent,
  status: EipStatus,
  snapshot: EipSnapshot,
  nowMs: number,
): EipOutcome {
  const eip =
    intent.action === 'AllocateAddresses' ? allocated(intent, snapshot) : snapshot.byId.get(intent.eipID ?? '');
  switch (intent.action) {
    case 'AllocateAddresses':
      return evaluateAllocation(intent, status, eip, nowMs);
    case 'AssociateAddress':
      if (eip !== undefined && TRANSITIONAL_STATES.includes(eip.status)) return { kind: 'moving' };
      return evaluateBinding(intent, status, eip, nowMs);
    case 'DisassociateAddress':
      if (eip !== undefined && TRANSITIONAL_STATES.includes(eip.status)) return { kind: 'moving' };
      return eip === undefined || eip.status === 'UNBIND' || !isThere(eip, status)
        ? done(intent, status, nowMs)
        : { kind: 'undone' };
    case 'ReleaseAddresses':
      if (eip === undefined) return done(intent, status, nowMs);
      return RELEASING_STATES.includes(eip.status) ? { kind: 'moving' } : { kind: 'undone' };
    default:
      // Another client wrote it into the status: it is no call of a claim.
      return { kind: 'undone' };
  }
}

/** Returns the status after a call that is done; undefined where only a description has its result. */
export function concludeEip(intent: EipIntent, status: EipStatus, nowMs: number): EipStatus | undefined {
  switch (intent.action) {
    case 'AssociateAddress':
      return inPhase(withoutIntent(status, intent), 'Bound', { reason: 'Bound' }, nowMs);
    case 'DisassociateAddress':
      return withoutIntent(withoutBinding(status), intent);
    case 'ReleaseAddresses':
      return withoutIntent(withoutEip(withoutAllocations(status)), intent);
    default:
      return undefined;
  }
}

function done(intent: EipIntent, status: EipStatus, nowMs: number): EipOutcome {
  const concluded = concludeEip(intent, status, nowMs);
  return concluded === undefined ? { kind: 'undone' } : { kind: 'done', status: concluded };
}

/** Returns a status without an intent. */
export function withoutIntent(status: EipStatus, intent: Pick<EipIntent, 'id'>): EipStatus {
  const left = (status.intents ?? []).filter((one) => one.id !== intent.id);
  const { intents: _intents, ...rest } = status;
  return left.length === 0 ? rest : { ...rest, intents: left };
}

/**
 * Finds the allocated EIP: by the id of the answer, or without an answer by the name, which no other allocation has.
 */
function allocated(intent: EipIntent, { byId, made }: EipSnapshot): Eip | undefined {
  if (intent.eipID !== undefined) return byId.get(intent.eipID);
  return made.find((eip) => eip.name === intent.resourceName);
}

function evaluateAllocation(intent: EipIntent, status: EipStatus, eip: Eip | undefined, nowMs: number): EipOutcome {
  if (eip === undefined) return { kind: intent.eipID === undefined ? 'repeat' : 'undone' };
  if (eip.status === 'CREATING') return { kind: 'moving' };
  if (RELEASING_STATES.includes(eip.status)) return { kind: 'undone' };
  const allocatedStatus = { ...withoutIntent(status, intent), eipID: eip.eipId, publicIP: eip.publicIp, isOurs: true };
  const why = { reason: 'Binding', message: `${eip.eipId} is being bound` };
  return { kind: 'done', status: inPhase(allocatedStatus, 'Binding', why, nowMs) };
}

function evaluateBinding(intent: EipIntent, status: EipStatus, eip: Eip | undefined, nowMs: number): EipOutcome {
  const isDone = eip !== undefined && eip.eniId === intent.eniID && eip.privateIp === intent.ips?.[0];
  return isDone ? done(intent, status, nowMs) : { kind: 'undone' };
}

function isThere(eip: Eip, { eniID, privateIP }: EipStatus): boolean {
  return eip.eniId === eniID && eip.privateIp === privateIP;
}

/** Ends the search for an allocated EIP once it is released. */
function withoutAllocations(status: EipStatus): EipStatus {
  const { allocations: _allocations, ...rest } = status;
  return rest;
}
