import { API_GROUP } from '../../crd/names.ts';
import { findMissingRights, renderRight } from '../../kube/ask-rights.ts';
import { type Informer, openInformer } from '../../kube/informer.ts';
import type { ObjectChange } from '../../kube/object-cache.ts';
import { ENDPOINT_SLICES, PODS } from '../../kube/resource-types.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { BACKEND_POD_INDEXES, type BackendPod, decodeBackendPod, PENDING, PODS_BY } from './backend-pod.ts';
import { decodeEndpointSlice, type EndpointSlice, SLICE_INDEXES, SLICES_BY } from './endpoint-slice.ts';

/** The endpoints of a Service. `starting`: they are being read; `forbidden`: a right is missing. */
type ServiceEndpoints =
  | { readonly kind: 'known'; readonly slices: readonly EndpointSlice[] }
  | { readonly kind: 'starting' }
  | { readonly kind: 'forbidden'; readonly missing: readonly string[] };

/** Receives changes. */
type PodListener = {
  /** The endpoints of a Service changed. `isUrgent`: an endpoint gets no new connections any more. */
  readonly onEndpoints: (service: string, isUrgent: boolean) => void;
  /** A Pod with a pending readiness gate changed. */
  readonly onGate: () => void;
};

type FollowDeps = Pick<ControllerDeps, 'kube' | 'clock' | 'log' | 'random' | 'metrics'>;

const ASK_AGAIN_MS = 30_000;
/** So long, and of so many Pods, it is known that they have ended: a slice may say it later. */
const ENDED_MS = 600_000;
const MAX_ENDED = 20_000;
/** A slice may name a Pod so long before it is in the cache. */
const APPEARS_MS = 60_000;
const PROBLEM = 'services/pods';
const GROUP = ENDPOINT_SLICES.group;
/** Rights that the published role has not. */
const RIGHTS = [
  { verb: 'list', resource: 'pods' },
  { verb: 'watch', resource: 'pods' },
  { verb: 'list', group: GROUP, resource: 'endpointslices' },
  { verb: 'watch', group: GROUP, resource: 'endpointslices' },
  ...['get', 'list', 'watch', 'patch'].map((verb) => ({ verb, group: API_GROUP, resource: 'nodeeniconfigs' })),
];

/**
 * Follows Pods and EndpointSlices where the rights are granted. Pods are followed without a Service that needs them too: a
 * readiness gate may be pending whose Service is gone.
 */
export class PodFollower {
  readonly #deps: FollowDeps;
  readonly #listener: PodListener;
  readonly #pods: Informer<BackendPod>;
  readonly #slices: Informer<EndpointSlice>;
  /** Services that need them: changes of others are not reported. */
  readonly #users = new Set<string>();
  readonly #needed: ChangeSignal;
  /** By uid of a Pod that has ended: until when that is known; monotonic milliseconds. The oldest is the first. */
  readonly #endedUntilMs = new Map<string, number>();
  /** By `namespace/name` that a slice has and the cache has not: since when; monotonic milliseconds. The oldest is the first. */
  readonly #absentSinceMs = new Map<string, number>();
  #missing: readonly string[] = [];

  constructor(deps: FollowDeps, listener: PodListener) {
    const { kube: client, clock, log, random, metrics } = deps;
    const common = { client, clock, log, random, observer: metrics.informer };
    this.#deps = deps;
    this.#listener = listener;
    this.#needed = new ChangeSignal(clock);
    this.#pods = openInformer({ ...common, type: PODS, decode: decodeBackendPod, indexes: BACKEND_POD_INDEXES });
    this.#slices = openInformer({
      ...common,
      type: ENDPOINT_SLICES,
      decode: decodeEndpointSlice,
      indexes: SLICE_INDEXES,
    });
  }

  /** Follows until aborted, from the moment in which the rights are there. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = [
      this.#slices.subscribe((change) => this.#onSlice(change)),
      this.#pods.subscribe((change) => this.#onPod(change)),
    ];
    while (!signal.aborted && !(await this.#mayFollow(signal))) await this.#needed.wait(ASK_AGAIN_MS, signal);
    if (!signal.aborted) await Promise.all([this.#slices.start(signal), this.#pods.start(signal)]);
    for (const end of stop) end();
    this.#deps.metrics.problems.report(PROBLEM, []);
  }

  /** The endpoints of a Service, whose changes are reported from now on. */
  endpointsOf(service: string): ServiceEndpoints {
    const isFirst = this.#users.size === 0;
    this.#users.add(service);
    if (isFirst && this.#missing.length > 0) {
      // They may have been granted meanwhile: ask at once.
      this.#missing = [];
      this.#needed.notify();
    }
    if (this.#missing.length > 0) return { kind: 'forbidden', missing: this.#missing };
    if (!this.isSynced) return { kind: 'starting' };
    return { kind: 'known', slices: this.#slices.byIndex(SLICES_BY.service, service) };
  }

  /** Whether all Pods and slices were read once. */
  get isSynced(): boolean {
    return this.#slices.isSynced && this.#pods.isSynced;
  }

  /** The Pods whose readiness gate is not True. */
  pendingGates(): readonly BackendPod[] {
    return this.#pods.byIndex(PODS_BY.gate, PENDING);
  }

  /** Finds a Pod by `namespace/name`. */
  podOf(key: string): BackendPod | undefined {
    return this.#pods.get(key);
  }

  /** Returns how long a Pod that is not in the cache may still appear; 0: there is none. */
  mayAppearMs(key: string): number {
    const nowMs = this.#deps.clock.monotonicMs();
    const sinceMs = this.#absentSinceMs.get(key) ?? nowMs;
    this.#absentSinceMs.set(key, sinceMs);
    for (const old of this.#absentSinceMs.keys()) {
      if (this.#absentSinceMs.size <= MAX_ENDED) break;
      this.#absentSinceMs.delete(old);
    }
    return Math.max(0, sinceMs + APPEARS_MS - nowMs);
  }

  /** The nodes of the Pods behind Services, by the addresses of these Pods. */
  nodesByIp(services: Iterable<string>): ReadonlyMap<string, string> {
    const nodes = new Map<string, string>();
    for (const service of services)
      for (const { endpoints } of this.#slices.byIndex(SLICES_BY.service, service))
        for (const { ip, pod } of endpoints) {
          const found = pod === undefined ? undefined : this.#pods.get(pod);
          if (found !== undefined && found.network !== 'host' && found.ips.includes(ip)) nodes.set(ip, found.nodeName);
        }
    return nodes;
  }

  /** Tells whether a Pod was in the cache some minutes ago and is not there any more, or has ended. */
  hasEnded(uid: string): boolean {
    return (this.#endedUntilMs.get(uid) ?? Number.NEGATIVE_INFINITY) > this.#deps.clock.monotonicMs();
  }

  /** Ends the reports about a Service: it does not need them any more. */
  forget(service: string): void {
    this.#users.delete(service);
  }

  async #mayFollow(signal: AbortSignal): Promise<boolean> {
    const { kube, log, metrics } = this.#deps;
    try {
      const missing = await findMissingRights(kube, RIGHTS, signal);
      this.#missing = missing.map(renderRight);
      const names = (this.#users.size === 0 ? [] : this.#missing).map((right) => `service-lb-controller: ${right}`);
      metrics.problems.report(
        PROBLEM,
        names.map((name) => ({ kind: 'Forbidden', name })),
      );
      return missing.length === 0;
    } catch (error) {
      if (!signal.aborted) log.warn('the API server does not say whether Pods may be read; will ask again', { error });
      return false;
    }
  }

  #onSlice({ before, after }: ObjectChange<EndpointSlice>): void {
    const isUrgent = losesEndpoint(before, after);
    for (const service of new Set([before?.service, after?.service]))
      if (service !== undefined && this.#users.has(service)) this.#listener.onEndpoints(service, isUrgent);
  }

  #onPod({ key, before, after }: ObjectChange<BackendPod>): void {
    this.#absentSinceMs.delete(key);
    if (after?.labels !== undefined) this.#listener.onGate();
    if (textOf(before) === textOf(after)) return;
    if (before !== undefined && before.uid !== after?.uid) this.#noteEnded(before.uid);
    const isUrgent = before?.isLeaving === false && (after?.isLeaving !== false || before.uid !== after.uid);
    for (const { service } of this.#slices.byIndex(SLICES_BY.pod, key))
      if (this.#users.has(service)) this.#listener.onEndpoints(service, isUrgent);
  }

  #noteEnded(uid: string): void {
    const nowMs = this.#deps.clock.monotonicMs();
    this.#endedUntilMs.set(uid, nowMs + ENDED_MS);
    for (const [old, untilMs] of this.#endedUntilMs) {
      if (untilMs > nowMs && this.#endedUntilMs.size <= MAX_ENDED) break;
      this.#endedUntilMs.delete(old);
    }
  }
}

/** What targets depend on of a Pod. */
function textOf(pod: BackendPod | undefined): string {
  if (pod === undefined) return '';
  const { uid, nodeName, ips, isLeaving, network, areContainersReady, areOtherGatesTrue, gate } = pod;
  const isAlmostReady = gate !== undefined && areContainersReady && areOtherGatesTrue;
  return JSON.stringify([uid, nodeName, ips, isLeaving, network, isAlmostReady]);
}

function losesEndpoint(before: EndpointSlice | undefined, after: EndpointSlice | undefined): boolean {
  const serving = new Set(after?.endpoints.flatMap(({ ip, isReady }) => (isReady ? [ip] : [])));
  return before?.endpoints.some(({ ip, isReady }) => isReady && !serving.has(ip)) ?? false;
}
