import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { BACKEND_READY_GATE } from '../../crd/names.ts';
import { Contests, contestText } from '../../kube/contest.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { PODS } from '../../kube/resource-types.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Clock } from '../../runtime/clock.ts';
import { countsOf } from '../../runtime/metrics/metric-table.ts';
import { Slices } from '../../runtime/slices.ts';
import type { BackendPod } from '../backends/backend-pod.ts';
import type { PodFollower } from '../backends/follow-pods.ts';
import { type OwnerKind, ownerIdOf } from '../balancers/balancer-owner.ts';
import { placesOfAddresses } from '../balancers/desired-places.ts';
import { readOwnerMark } from '../balancers/owner-mark.ts';
import type { GatePlan, OwnerGates } from '../balancers/owner-plan.ts';
import { TargetStates } from '../balancers/target-states.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { CcmEvents } from '../events/event-reasons.ts';
import { decideGate, type GateDecision, type GateOwner, type GatePlace } from './decide-gate.ts';
import { type DirectOwner, type GateSource, selectsPod } from './gate-source.ts';

/** Between two passes; the health of targets is not asked for more often. */
const APART_MS = 1_000;
/** While gates are pending and nothing changes, passes become rarer. */
const POLL_MS = { first: 2_000, most: 15_000 } as const;
const IDLE_MS = 300_000;
const RETRY_MS = 10_000;
/** Conditions that are written at once. */
const WRITES = 8;

/**
 * Keeps the readiness gates of Pods behind load balancers: each is True once the load balancers have the Pod as a healthy
 * target, and stays True. Nothing is asked of the cloud while no gate is pending.
 */
export class GateKeeper {
  readonly #deps: ControllerDeps;
  readonly #sources: () => readonly GateSource[];
  readonly #pods: PodFollower;
  readonly #states: TargetStates;
  readonly #plans = new Map<string, GatePlan>();
  /** Owners whose load balancers cannot be changed until a person changes something. */
  readonly #failing = new Set<string>();
  /** By uid of a pending Pod: since when its containers are ready; monotonic milliseconds. */
  readonly #sinceMs = new Map<string, number>();
  readonly #changed: ChangeSignal;
  readonly #contests = new Contests();
  readonly #slices: Slices;
  #isDirty = false;
  #pollMs: number = POLL_MS.first;

  /** @param sources is asked in each pass */
  constructor(deps: ControllerDeps, sources: () => readonly GateSource[], pods: PodFollower) {
    this.#deps = deps;
    this.#sources = sources;
    this.#pods = pods;
    this.#states = new TargetStates(deps);
    this.#changed = new ChangeSignal(deps.clock);
    this.#slices = new Slices(deps.clock);
  }

  /** The gates, as the controller of one kind of owners tells them of these. */
  of(kind: OwnerKind): OwnerGates {
    return {
      note: (key, plan) => {
        this.#plans.set(ownerIdOf({ kind, key }), plan);
        this.notify();
      },
      fail: (key) => {
        const id = ownerIdOf({ kind, key });
        if (this.#failing.has(id)) return;
        this.#failing.add(id);
        this.notify();
      },
      recover: (key) => {
        this.#failing.delete(ownerIdOf({ kind, key }));
      },
      forget: (key) => {
        const id = ownerIdOf({ kind, key });
        this.#failing.delete(id);
        if (this.#plans.delete(id)) this.notify();
      },
    };
  }

  /** Notes that something has changed on which gates depend. */
  notify(): void {
    this.#isDirty = true;
    this.#pollMs = POLL_MS.first;
    this.#changed.notify();
  }

  /**
   * Keeps gates until aborted; never rejects. Faults of the cloud and of the API server are logged and tried again.
   * @param mayAct whether this program keeps load balancers now: another one may
   */
  async run(mayAct: () => boolean, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    let waitMs = IDLE_MS;
    while (!signal.aborted) {
      if (!this.#isDirty) await this.#changed.wait(waitMs, signal);
      if (signal.aborted) break;
      this.#isDirty = false;
      try {
        const isReady = this.#pods.isSynced && this.#sources().every((source) => source.isReady());
        waitMs = mayAct() && isReady ? await this.#pass(signal) : IDLE_MS;
      } catch (error) {
        if (signal.aborted) break;
        if (!isCloudError(error) && !isKubeError(error)) throw error;
        log.warn('readiness gates could not be kept; will try again', { error });
        waitMs = RETRY_MS;
      }
      await clock.sleep(APART_MS, signal).catch(() => {});
    }
  }

  /** Decides and writes all pending gates; returns when to look again. */
  async #pass(signal: AbortSignal): Promise<number> {
    const { clock, config, metrics } = this.#deps;
    const pending = this.#pods.pendingGates().filter(({ isLeaving }) => !isLeaving);
    this.#forgetOthers(pending);
    const ready = pending.filter(({ areContainersReady }) => areContainersReady);
    if (ready.length === 0) {
      this.#states.clear();
      metrics.gatesPending.replace([]);
      return IDLE_MS;
    }
    const direct = Map.groupBy(
      this.#sources().flatMap((source) => source.owners()),
      ({ object }) => object.metadata.namespace,
    );
    const selecting: { readonly pod: BackendPod; readonly owners: readonly DirectOwner[] }[] = [];
    for (const pod of ready) {
      await this.#slices.next();
      const its = direct.get(pod.namespace) ?? [];
      selecting.push({ pod, owners: its.filter((owner) => selectsPod(owner, pod)) });
    }
    const context = { priority: 'pod' as const, owner: 'readiness gates', signal, timeoutMs: config.cloudTimeoutMs };
    const ids = new Map<string, Set<string>>();
    for (const owner of selecting.flatMap(({ owners }) => owners)) {
      const [{ namespace = '' }, id] = [owner.object.metadata, idOf(owner.object)];
      if (id === undefined || typeof this.#planOf(owner) !== 'object') continue;
      ids.set(namespace, (ids.get(namespace) ?? new Set()).add(id));
    }
    await this.#states.refresh(ids.values(), context);
    const decided: { readonly pod: BackendPod; readonly decision: GateDecision }[] = [];
    for (const { pod, owners } of selecting) {
      await this.#slices.next();
      const views: GateOwner[] = [];
      for (const owner of owners) views.push(await this.#view(owner, pod, context));
      const sinceMs = this.#sinceMs.get(pod.uid) ?? clock.monotonicMs();
      this.#sinceMs.set(pod.uid, sinceMs);
      decided.push({ pod, decision: decideGate(views, clock.monotonicMs() - sinceMs) });
    }
    const waiting = decided.filter(({ decision }) => decision.status === 'False');
    const byReason = countsOf(waiting.map(({ decision }) => decision.reason));
    metrics.gatesPending.replace([...byReason].map(([reason, count]) => [{ reason }, count]));
    const isWritten = await this.#write(decided, signal);
    if (!isWritten) return RETRY_MS;
    if (waiting.length === 0) return IDLE_MS;
    const pollMs = this.#pollMs;
    this.#pollMs = Math.min(POLL_MS.most, pollMs * 2);
    return pollMs;
  }

  #planOf({ kind, planKey }: DirectOwner): GatePlan | undefined {
    return this.#plans.get(ownerIdOf({ kind, key: planKey }));
  }

  async #view(owner: DirectOwner, pod: BackendPod, context: CallContext): Promise<GateOwner> {
    const { kind, key, planKey, object } = owner;
    const plan = this.#planOf(owner);
    const isFailing = this.#failing.has(ownerIdOf({ kind, key: planKey }));
    if (plan === undefined || plan === 'refused') {
      const state = plan ?? (isFailing ? 'failing' : 'unknown');
      return { kind, key, state, binding: 'possible', places: [] };
    }
    const { desired, unbound, refused = [] } = plan;
    const name = `${pod.namespace}/${pod.name}`;
    const binding = unbound.impossible.has(name)
      ? 'impossible'
      : unbound.unselected.has(name)
        ? 'overQuota'
        : 'possible';
    const places: GatePlace[] = [];
    const id = idOf(object);
    const isUnknown = isFailing || (id !== undefined && this.#states.isUnreadable(id));
    let hasUnserved = false;
    for (const { place, its, needsCertificate } of placesOfAddresses(desired, pod.ips)) {
      const found = id === undefined ? undefined : await this.#states.findPlace(id, desired, place, context);
      // A host without a certificate is not served at all.
      if (found?.kind === 'absent' && needsCertificate === true) {
        hasUnserved = true;
        continue;
      }
      for (const { ip, port } of its) {
        const state = found?.kind === 'found' ? this.#states.stateOf({ ...found.ref, ip, port }) : 'missing';
        // What has its place may be of others, or is not made: it may never come.
        const isLate = found !== undefined && !(found.kind === 'found' && found.isNamed);
        const health = state !== 'missing' ? state : refused.includes(ip) ? 'refused' : isLate ? 'unmade' : state;
        places.push({ place, ip, port, health });
      }
    }
    const state = isUnknown ? 'failing' : 'planned';
    return { kind, key, state, binding: hasUnserved && places.length === 0 ? 'impossible' : binding, places };
  }

  /** Writes conditions; a Pod whose condition cannot be written keeps no other one waiting. @returns whether all are written */
  async #write(
    decided: readonly { readonly pod: BackendPod; readonly decision: GateDecision }[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const write = async ({ pod, decision }: (typeof decided)[number]): Promise<boolean> => {
      try {
        return await writeGate({ ...this.#deps, contests: this.#contests }, pod, decision, signal);
      } catch (error) {
        if (signal.aborted || !isKubeError(error)) throw error;
        const { namespace, name } = pod;
        this.#deps.log.warn('the readiness gate of a Pod could not be written', { pod: `${namespace}/${name}`, error });
        return false;
      }
    };
    let isWritten = true;
    // What lets Pods serve comes first.
    const sorted = decided.toSorted((one, other) => rank(one.decision) - rank(other.decision));
    for (let at = 0; at < sorted.length; at += WRITES) {
      const some = sorted.slice(at, at + WRITES);
      const results = await Promise.all(some.map(write));
      isWritten &&= results.every((one) => one);
    }
    return isWritten;
  }

  #forgetOthers(pending: readonly BackendPod[]): void {
    const uids = new Set(pending.filter(({ areContainersReady }) => areContainersReady).map(({ uid }) => uid));
    for (const uid of this.#sinceMs.keys()) if (!uids.has(uid)) this.#sinceMs.delete(uid);
  }
}

function rank({ status }: GateDecision): number {
  return status === 'True' ? 0 : 1;
}

function idOf({ metadata: { annotations = {}, uid = '' } }: KubeObject): string | undefined {
  return readOwnerMark({ annotations, uid }).loadBalancerId;
}

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
async function writeGate(
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
