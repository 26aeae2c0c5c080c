import { API_GROUP } from '../../crd/names.ts';
import { findMissingRights, renderRight } from '../../kube/ask-rights.ts';
import { type Informer, openInformer } from '../../kube/informer.ts';
import type { ObjectChange } from '../../kube/object-cache.ts';
import { ENDPOINT_SLICES, PODS } from '../../kube/resource-types.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import {
  BACKEND_POD_BOUNDS,
  BACKEND_POD_INDEXES,
  type BackendPod,
  decodeBackendPod,
  PENDING,
  PODS_BY,
} from './backend-pod.ts';
import { decodeEndpointSlice, type EndpointSlice, SLICE_BOUNDS, SLICE_INDEXES, SLICES_BY } from './endpoint-slice.ts';

/** The endpoints of a Service. `starting`: they are being read; `forbidden`: a right is missing. */
type ServiceEndpoints =
  | { readonly kind: 'known'; readonly slices: readonly EndpointSlice[] }
  | { readonly kind: 'starting' }
  | { readonly kind: 'forbidden'; readonly missing: readonly string[] };

/** Receives changes of the endpoints of a Service. `isUrgent`: an endpoint gets no new connections any more. */
type EndpointListener = (service: string, isUrgent: boolean) => void;

/** The Services whose endpoints one controller needs. */
export type FollowedServices = {
  /** The endpoints of a Service, whose changes are reported from now on. */
  readonly endpointsOf: (service: string) => ServiceEndpoints;
  /** Ends the reports about a Service: it is not needed any more. */
  readonly forget: (service: string) => void;
};

type Follower = { readonly services: Set<string>; readonly listener: EndpointListener };

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
  /** Is called when a Pod with a pending readiness gate changes. */
  readonly #onGate: () => void;
  readonly #pods: Informer<BackendPod>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #followers: Follower[] = [];
  readonly #needed: ChangeSignal;
  /** By uid of a Pod that has ended: until when that is known; monotonic milliseconds. The oldest is the first. */
  readonly #endedUntilMs = new Map<string, number>();
  /** By `namespace/name` that a slice has and the cache has not: since when; monotonic milliseconds. The oldest is the first. */
  readonly #absentSinceMs = new Map<string, number>();
  #missing: readonly string[] = [];
  /** Resolves when a right was found to be missing. */
  readonly #refused = Promise.withResolvers<void>();

  /** @param onGate is called when a Pod with a pending readiness gate changed */
  constructor(deps: FollowDeps, onGate: () => void) {
    const { kube: client, clock, log, random, metrics } = deps;
    const common = { client, clock, log, random, observer: metrics.informer };
    this.#deps = deps;
    this.#onGate = onGate;
    this.#needed = new ChangeSignal(clock);
    this.#pods = openInformer({
      ...common,
      type: PODS,
      decode: decodeBackendPod,
      indexes: BACKEND_POD_INDEXES,
      bounds: BACKEND_POD_BOUNDS,
    });
    this.#slices = openInformer({
      ...common,
      type: ENDPOINT_SLICES,
      decode: decodeEndpointSlice,
      indexes: SLICE_INDEXES,
      bounds: SLICE_BOUNDS,
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
  }

  /** Follows the endpoints of Services for one controller: changes of others are not reported to it. */
  open(listener: EndpointListener): FollowedServices {
    const follower: Follower = { services: new Set(), listener };
    this.#followers.push(follower);
    return {
      endpointsOf: (service) => {
        const isFirst = !this.#isUsed;
        follower.services.add(service);
        return this.#endpointsOf(service, isFirst);
      },
      forget: (service) => {
        follower.services.delete(service);
      },
    };
  }

  get #isUsed(): boolean {
    return this.#followers.some(({ services }) => services.size > 0);
  }

  #endpointsOf(service: string, isFirst: boolean): ServiceEndpoints {
    if (isFirst && this.#missing.length > 0) {
      // They may have been granted meanwhile: ask at once.
      this.#missing = [];
      this.#needed.notify();
    }
    if (this.#missing.length > 0) return { kind: 'forbidden', missing: this.#missing };
    if (!this.isSynced) return { kind: 'starting' };
    return { kind: 'known', slices: this.#slices.byIndex(SLICES_BY.service, service) };
  }

  /** Resolves when all Pods and slices were read once, a right to read them is missing, `mostMs` have passed, or `signal` aborts. */
  async untilRead(mostMs: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const ending = AbortSignal.any([signal, over.signal]);
    const read = Promise.all([this.#slices.synced(ending), this.#pods.synced(ending)]);
    const late = this.#deps.clock.sleep(mostMs, ending);
    await Promise.race([read, this.#refused.promise, late]).catch(() => {});
    over.abort(new Error('it is known'));
    await Promise.allSettled([read, late]);
  }

  /** The Pods behind a Service: those that its slices name, where they have the address of the endpoint. */
  podsOf(service: string): readonly BackendPod[] {
    return this.#slices.byIndex(SLICES_BY.service, service).flatMap(({ endpoints }) =>
      endpoints.flatMap(({ ip, pod }) => {
        const found = pod === undefined ? undefined : this.#pods.get(pod);
        return found?.ips.includes(ip) === true ? [found] : [];
      }),
    );
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

  /** The nodes of the Pods behind Services, by the addresses of these Pods: of several, all but one say what is not true. */
  nodesByIp(services: Iterable<string>): ReadonlyMap<string, ReadonlySet<string>> {
    const nodes = new Map<string, Set<string>>();
    for (const service of services)
      for (const { endpoints } of this.#slices.byIndex(SLICES_BY.service, service))
        for (const { ip, pod } of endpoints) {
          const found = pod === undefined ? undefined : this.#pods.get(pod);
          if (found === undefined || found.network === 'host' || !found.ips.includes(ip)) continue;
          const known = nodes.get(ip);
          if (known === undefined) nodes.set(ip, new Set([found.nodeName]));
          else known.add(found.nodeName);
        }
    return nodes;
  }

  /** Reports whether a Pod was in the cache some minutes ago and is not there any more, or has ended. */
  hasEnded(uid: string): boolean {
    return (this.#endedUntilMs.get(uid) ?? Number.NEGATIVE_INFINITY) > this.#deps.clock.monotonicMs();
  }

  async #mayFollow(signal: AbortSignal): Promise<boolean> {
    const { kube, log, metrics } = this.#deps;
    try {
      const missing = await findMissingRights(kube, RIGHTS, signal);
      this.#missing = missing.map(renderRight);
      const names = (this.#isUsed ? this.#missing : []).map((right) => `service-lb-controller: ${right}`);
      metrics.problems.reportOfTerm(
        PROBLEM,
        names.map((name) => ({ kind: 'Forbidden', name })),
      );
      if (missing.length > 0) this.#refused.resolve();
      return missing.length === 0;
    } catch (error) {
      if (!signal.aborted) log.warn('the API server does not say whether Pods may be read; will ask again', { error });
      return false;
    }
  }

  #onSlice({ before, after }: ObjectChange<EndpointSlice>): void {
    const isUrgent = losesEndpoint(before, after);
    for (const service of new Set([before?.service, after?.service]))
      if (service !== undefined) this.#report(service, isUrgent);
  }

  #report(service: string, isUrgent: boolean): void {
    for (const { services, listener } of this.#followers) if (services.has(service)) listener(service, isUrgent);
  }

  #onPod({ key, before, after }: ObjectChange<BackendPod>): void {
    this.#absentSinceMs.delete(key);
    if (after?.labels !== undefined) this.#onGate();
    if (textOf(before) === textOf(after)) return;
    if (before !== undefined && before.uid !== after?.uid) this.#noteEnded(before.uid);
    const isUrgent = before?.isLeaving === false && (after?.isLeaving !== false || before.uid !== after.uid);
    for (const { service } of this.#slices.byIndex(SLICES_BY.pod, key)) this.#report(service, isUrgent);
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
