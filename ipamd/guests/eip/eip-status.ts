import type { EipClaim } from '../../../crd/eip-claim.ts';
import { type Condition, withCondition } from '../../../kube/conditions.ts';
import { MAX_TEXT, messageText } from '../../../runtime/limit-text.ts';
import type { EipPhase, EipStatus } from './eip-view.ts';

/** Why a claim is in its phase, for people. */
type EipReason = {
  /** The reason of the condition, in CamelCase. */
  readonly reason: string;
  readonly message?: string;
};

/**
 * Returns a status in this phase, with its condition Ready. Returns the same object when nothing changes, so that no
 * write is made.
 */
export function inPhase(status: EipStatus, phase: EipPhase, why: EipReason, nowMs: number): EipStatus {
  const { message: _message, ...rest } = status;
  const isReady = phase === 'Bound';
  const conditions = withCondition(
    (status.conditions ?? []) as readonly Condition[],
    {
      type: 'Ready',
      status: isReady ? 'True' : 'False',
      reason: why.reason,
      ...(why.message === undefined ? {} : { message: why.message }),
    },
    instantOf(nowMs),
  );
  const next: EipStatus = {
    ...rest,
    phase,
    ...(why.message === undefined ? {} : { message: messageText(why.message, MAX_TEXT.statusMessage) }),
    conditions: [...conditions],
  };
  return isSameStatus(status, next) ? status : next;
}

/** Renders a time as RFC 3339. */
export function instantOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** Reports whether two statuses, or specs, are equal; the order of fields does not count. */
export function isSameStatus(one: object, other: object): boolean {
  return canonical(one) === canonical(other);
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

/**
 * Reports whether the Pods of a claim name this EIP. Such an EIP is never released; any other was allocated for the
 * claim. The status says the same, and may have been edited.
 */
export function isListed({ spec = {} }: Pick<EipClaim, 'spec'>, eipId: string): boolean {
  return (spec.eipIDs ?? []).includes(eipId);
}

/** Returns a status without an EIP and its binding. */
export function withoutEip(status: EipStatus): EipStatus {
  const { eipID: _eipID, publicIP: _publicIP, isOurs: _isOurs, ...rest } = withoutBinding(status);
  return rest;
}

/** Returns a status without the binding of the EIP. */
export function withoutBinding(status: EipStatus): EipStatus {
  const { privateIP: _privateIP, eniID: _eniID, nodeName: _nodeName, ...rest } = status;
  return rest;
}
