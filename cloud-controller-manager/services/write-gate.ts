import { BACKEND_READY_GATE } from '../../crd/names.ts';
import { type Contests, contestText } from '../../kube/contest.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { PODS } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { BackendPod } from '../backends/backend-pod.ts';
import type { CcmEvents } from '../events/event-reasons.ts';
import type { GateDecision } from './decide-gate.ts';

/** What writes gates. */
type GateWriter = {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly events: CcmEvents;
  /** By uid of the Pod. */
  readonly contests: Contests;
};

type GatedPod = Pick<BackendPod, 'namespace' | 'name' | 'uid' | 'resourceVersion' | 'gate'>;

/** Field of a Pod, for people. */
const FIELD = `the condition ${BACKEND_READY_GATE}`;

/**
 * Writes the condition of the readiness gate of a Pod, if it is another one. Guarded by the uid: a Pod that is gone, or
 * another one of its name, is left alone. One that another client keeps changing back is written rarely, with an event.
 * @returns whether it is written, or has not to be. @throws KubeError
 */
export async function writeGate(
  { kube, clock, events, contests }: GateWriter,
  { namespace, name, uid, resourceVersion, gate }: GatedPod,
  { status, reason, message }: GateDecision,
  signal: AbortSignal,
): Promise<boolean> {
  if (gate?.status === status && gate.reason === reason && gate.message === message) return true;
  const isUndone = contests.valueOf(uid) !== textOf(gate ?? {});
  const { waitMs, isNew } = contests.ask(uid, isUndone, { uid, resourceVersion }, clock.monotonicMs());
  if (isNew) {
    const involved = involvedObject(PODS, { namespace, name, uid });
    events.record({ involved, type: 'Warning', reason: 'FieldContested', message: contestText(FIELD) });
  }
  if (waitMs > 0) return false;
  const changed = gate?.status === status ? {} : { lastTransitionTime: new Date(clock.nowMs()).toISOString() };
  const condition = { type: BACKEND_READY_GATE, status, reason, message, ...changed };
  const body = { metadata: { uid }, status: { conditions: [condition] } };
  try {
    const patch = { kind: 'strategic', body, subresource: 'status' } as const;
    const { metadata } = await kube.patch(PODS, { namespace, name }, patch, signal);
    contests.note(uid, textOf({ status, reason, message }), metadata, clock.monotonicMs());
    return true;
  } catch (error) {
    if (!isKubeError(error, 'NOT_FOUND', 'CONFLICT')) throw error;
    return true;
  }
}

function textOf({
  status = '',
  reason = '',
  message = '',
}: Partial<GateDecision> | NonNullable<BackendPod['gate']>): string {
  return JSON.stringify([status, reason, message]);
}
