import { MIRROR_ANNOTATION } from '../crd/foreign-names.ts';
import { parseGoDuration } from '../crd/go-duration.ts';
import { BACKEND_READY_GATE, POD_ANNOTATION } from '../crd/names.ts';
import { renderFault } from '../runtime/decode.ts';
import { type AddOperation, type Admission, add } from './admission.ts';
import type { BackendPod } from './backend-pod.ts';
import { type SelectingService, selects } from './direct-access.ts';

/** The context of a decision about a Pod behind load balancers. */
export type GateContext = {
  /** The Services of the Pod's namespace whose Pods are backends. */
  readonly services: Iterable<Pick<SelectingService, 'selector'>>;
  /** Whether the API server has `lifecycle.preStop.sleep`: Kubernetes 1.30. An older one would refuse the Pod. */
  readonly hasPreStopSleep: boolean;
};

/**
 * Decides what a new Pod gets as a backend of load balancers: the readiness gate, where a Service with direct access, or
 * one that an Ingress with direct access leads to, selects it; and a preStop sleep, where its annotation asks for one.
 *
 * A second run over the result adds nothing. An annotation that cannot be read adds nothing and yields a warning.
 */
export function decideGate(pod: BackendPod, context: GateContext): Admission {
  const { metadata, spec } = pod;
  // A Pod of the host network has no address of its own that could be a backend.
  if (spec.hostNetwork === true || metadata.annotations?.[MIRROR_ANNOTATION] !== undefined) return NOTHING;
  const sleep = decideSleep(pod, context.hasPreStopSleep);
  return { patch: [...gatePatch(pod, context.services), ...sleep.patch], warnings: sleep.warnings };
}

const NOTHING: Admission = { patch: [], warnings: [] };

function gatePatch({ metadata, spec }: BackendPod, services: GateContext['services']): readonly AddOperation[] {
  const gates = spec.readinessGates;
  if (gates?.some(({ conditionType }) => conditionType === BACKEND_READY_GATE)) return [];
  const labels = metadata.labels ?? {};
  if (!Iterator.from(services).some((service) => selects(service, labels))) return [];
  const gate = { conditionType: BACKEND_READY_GATE };
  return [gates === undefined ? add('/spec/readinessGates', [gate]) : add('/spec/readinessGates/-', gate)];
}

const MS_PER_S = 1_000;
/** Longest sleep, seconds: a rollout waits for it at each Pod. */
const MAX_SLEEP_S = 300;
/** Kubernetes' own grace period of a Pod that names none, seconds. */
const DEFAULT_GRACE_S = 30;

function decideSleep({ metadata, spec }: BackendPod, hasPreStopSleep: boolean): Admission {
  const text = metadata.annotations?.[POD_ANNOTATION.preStopSleep]?.trim();
  if (text === undefined) return NOTHING;
  const path = POD_ANNOTATION.preStopSleep;
  const ms = parseGoDuration(text) ?? Number.NaN;
  const seconds = ms / MS_PER_S;
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > MAX_SLEEP_S) {
    const expected = `whole seconds from 1s to ${MAX_SLEEP_S / 60}m, such as 15s`;
    return { patch: [], warnings: [`${renderFault({ path, expected, got: text })}; no sleep is added`] };
  }
  if (!hasPreStopSleep) {
    const warning = `${path}: no sleep is added, as --pre-stop-sleep of the webhook is off: it needs Kubernetes 1.30`;
    return { patch: [], warnings: [warning] };
  }
  const hooks = spec.containers.flatMap((container, index) => hookPatch(container, index, seconds));
  // One that sleeps as long has made the grace period what it is: its author, or an earlier run of this function.
  const isCounted = spec.containers.some(({ lifecycle }) => (lifecycle?.preStop?.sleep?.seconds ?? 0) >= seconds);
  if (hooks.length === 0 || isCounted) return { patch: hooks, warnings: [] };
  const graceS = (spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_S) + seconds;
  return { patch: [...hooks, add('/spec/terminationGracePeriodSeconds', graceS)], warnings: [] };
}

function hookPatch({ lifecycle }: BackendPod['spec']['containers'][number], index: number, seconds: number) {
  if (lifecycle?.preStop !== undefined) return [];
  const hook = { sleep: { seconds } };
  const path = `/spec/containers/${index}/lifecycle`;
  return [lifecycle === undefined ? add(path, { preStop: hook }) : add(`${path}/preStop`, hook)];
}
