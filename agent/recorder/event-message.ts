import { type AgentEventInit, EVENT_KIND, EVENT_OUTCOME } from '../api/ops-messages.ts';
import type { OccurrenceKind, OperationKind } from './operation-log.ts';

/** One event as watchers get it. */
export type EventMessage = AgentEventInit;

/** Numbers of the kinds of events, as in the contract. */
export const KIND_NUMBER: Readonly<Record<OperationKind | OccurrenceKind | 'repair', number>> = {
  add: EVENT_KIND.EVENT_KIND_ADD,
  del: EVENT_KIND.EVENT_KIND_DEL,
  check: EVENT_KIND.EVENT_KIND_CHECK,
  gc: EVENT_KIND.EVENT_KIND_GC,
  repair: EVENT_KIND.EVENT_KIND_REPAIR,
  supply: EVENT_KIND.EVENT_KIND_SUPPLY,
  publish: EVENT_KIND.EVENT_KIND_PUBLISH,
  conflict: EVENT_KIND.EVENT_KIND_CONFLICT,
  fight: EVENT_KIND.EVENT_KIND_FIGHT,
  status: EVENT_KIND.EVENT_KIND_STATUS,
};

/** Returns the number of an outcome, as in the contract. */
export function outcomeNumber(isFailure: boolean): number {
  return isFailure ? EVENT_OUTCOME.EVENT_OUTCOME_FAILED : EVENT_OUTCOME.EVENT_OUTCOME_OK;
}

const US_PER_MS = 1_000;

/** Converts milliseconds to whole microseconds, never below 0. */
export function microseconds(ms: number): number {
  return Math.max(0, Math.round(ms * US_PER_MS));
}

/** Names a Pod: 'namespace/name', or its container id when the runtime gave no name. */
export function podSubject(pod: {
  readonly podNamespace: string;
  readonly podName: string;
  readonly containerId: string;
}): string {
  return pod.podName === '' ? pod.containerId : `${pod.podNamespace}/${pod.podName}`;
}
