import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import type { Target } from '../../cloud/targets.ts';
import { LOAD_BALANCER_ID_ANNOTATION } from '../../crd/foreign-names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { ControllerDeps } from '../controller-deps.ts';
import { compareIdentity } from './compare-identity.ts';
import { decideAdoption } from './decide-adoption.ts';
import type { BalancerSource, DesiredLoadBalancer } from './desired-load-balancer.ts';
import { diffLoadBalancer, type ObservedLoadBalancer } from './diff-load-balancer.ts';
import { DrainTimes } from './drain-times.ts';
import { type Baseline, baselineOf } from './find-drift.ts';
import { type DriftDecision, DriftKeeper } from './keep-drift.ts';
import type { LoadBalancerStep, StepTarget } from './load-balancer-step.ts';
import { type Notice, remark } from './notice.ts';
import { observeLoadBalancer } from './observe-load-balancer.ts';
import { ownerOf } from './plan-load-balancer.ts';
import type { AddressPublisher } from './publish-addresses.ts';
import { type BalancerRecord, readRecord, tokenOf } from './read-record.ts';
import { readServiceHead } from './read-service.ts';
import { StepError, StepRunner } from './run-step.ts';
import type { ServiceReports } from './service-reports.ts';
import { ServingTargets } from './serving-targets.ts';
import type { ServiceWriter } from './write-service.ts';

/** How far a load balancer is. */
type KeepResult =
  | {
      readonly kind: 'kept';
      readonly object: KubeObject;
      readonly balancer: LoadBalancer;
      readonly notices: readonly Notice[];
      /** Until a target has drained; infinite when none waits. */
      readonly drainMs: number;
      /** What later changes of others are compared with. */
      readonly baseline: Baseline;
      /** Whether nothing was changed, and no other client had changed anything. */
      readonly isAsBefore: boolean;
    }
  | { readonly kind: 'again'; readonly afterMs: number; readonly notices: readonly Notice[] }
  /** It serves; the cloud refused some targets, which are to be tried again. */
  | {
      readonly kind: 'refused';
      readonly object: KubeObject;
      readonly balancer: LoadBalancer;
      readonly notices: readonly Notice[];
      readonly error: StepError;
    };

/** Each round reads the load balancer, and takes the steps to the desired one. */
const MAX_ROUNDS = 5;
const SOON_MS = 2_000;
const ASK_AGAIN_MS = 20_000;
const REFUSED_MS = 60_000;
/** New targets are not healthy for long. */
const HELD_MS = 15_000;
/** A load balancer whose creation is not known may be listed so much later. */
const APPEARS_MS = 60_000;
/** The Service has changed since the creation with a token was sent: what that made is still to be found. */
const OTHER_REQUEST = 'UnsupportedOperation.IdempotentParameterMismatch';
/** The creation with a token has failed, so that the token is used up. */
const TOKEN_USED_UP = 'InvalidParameter.ClientTokenLimitExceeded';

/** Makes load balancers what is desired. What is made is on record before. */
export class BalancerKeeper {
  readonly #deps: ControllerDeps;
  readonly #writer: ServiceWriter;
  readonly #reports: ServiceReports;
  readonly #drains: DrainTimes;
  readonly #serving: ServingTargets;
  readonly #drift: DriftKeeper;
  readonly #published: AddressPublisher;
  /** By ClientToken or id: since when the cloud does not know a creation, or a load balancer. */
  readonly #lostSinceMs = new Map<string, number>();

  constructor(deps: ControllerDeps, writer: ServiceWriter, reports: ServiceReports, published: AddressPublisher) {
    this.#published = published;
    this.#deps = deps;
    this.#writer = writer;
    this.#reports = reports;
    this.#drains = new DrainTimes(deps.clock);
    this.#drift = new DriftKeeper(deps, reports);
    this.#serving = new ServingTargets(deps);
  }

  /**
   * Compares and changes the load balancer of a Service until nothing is left to do. Idempotent.
   * @param baseline what was in force when it was compared last; undefined: not known
   * @throws CloudError, KubeError, StepError when it is to be tried again
   */
  async keep(
    object: KubeObject,
    desired: DesiredLoadBalancer,
    vpcId: string,
    context: CallContext,
    baseline?: Baseline,
  ): Promise<KeepResult> {
    const { clusterId } = this.#deps.config;
    let current = object;
    let drift: DriftDecision | undefined;
    for (let round = 1; round <= MAX_ROUNDS; round++) {
      const head = readServiceHead(current);
      const record = readRecord(head);
      const owner = ownerOf(clusterId, head.uid);
      const loadBalancerId = record.loadBalancerId ?? idOf(desired.source);
      const search = { owner, listenerName: desired.listenerName, loadBalancerId };
      const view = await observeLoadBalancer(this.#deps, search, context);
      if (view.kind === 'pending') return { kind: 'again', afterMs: SOON_MS, notices: [] };
      const observed = view.kind === 'found' ? view.observed : undefined;
      const refusal =
        observed?.balancer.loadBalancerId === idOf(desired.source) && observed !== undefined
          ? decideAdoption(observed, vpcId, clusterId)
          : undefined;
      if (refusal !== undefined) return { kind: 'again', afterMs: REFUSED_MS, notices: [refusal] };
      if (observed !== undefined) {
        this.#drains.note(observed.balancer.loadBalancerId, observed.targets);
        this.#published.note(head.key, observed.targets);
        this.#lostSinceMs.delete(observed.balancer.loadBalancerId);
      }
      // What differs after a change of ours is no change of others.
      drift ??= this.#drift.decide(head, desired, observed, baseline);
      const diff = await this.#compare(head.key, drift.desired, observed, context);
      // The lists of the nodes are being read.
      if (diff === undefined) return { kind: 'again', afterMs: SOON_MS, notices: [] };
      const { steps } = diff;
      const notices = [...diff.notices, ...drift.notices];
      const [first] = steps;
      const moved = await this.#moveRecord(current, observed, first, desired, context);
      if (moved !== undefined) {
        current = moved;
        continue;
      }
      if (notices.some(({ blocks }) => blocks)) return { kind: 'again', afterMs: REFUSED_MS, notices };
      if (observed === undefined) {
        if (first?.kind !== 'create') return { kind: 'again', afterMs: SOON_MS, notices };
        if (record.loadBalancerId !== undefined && !this.#isLost(record.loadBalancerId))
          return { kind: 'again', afterMs: ASK_AGAIN_MS, notices };
        if (record.loadBalancerId !== undefined) {
          const lost = this.#drift.decideLost(head, record.loadBalancerId);
          if (lost !== undefined) return { kind: 'again', afterMs: REFUSED_MS, notices: [...notices, lost] };
        }
        const made = await this.#create(current, first, record, owner, context);
        if (made === undefined) return { kind: 'again', afterMs: SOON_MS, notices };
        current = made;
        continue;
      }
      current = await this.#ensureRecord(current, observed, record, context);
      if (first === undefined && diff.held !== undefined) {
        const waits = await this.#look(observed, diff.held, context);
        if (waits === undefined) continue;
        return { ...waits, notices: [...notices, ...waits.notices] };
      }
      // Their Pods have ended, which their Service will show.
      if (first === undefined && diff.isRefused) return { kind: 'again', afterMs: SOON_MS, notices };
      if (first === undefined) {
        const { balancer, targets } = observed;
        this.#serving.release(balancer.loadBalancerId);
        const drainMs = this.#drains.nextMs(balancer.loadBalancerId, targets);
        const isAsBefore = round === 1 && drift.drifts.length === 0;
        const next = baselineOf(desired, observed, drift.left);
        return { kind: 'kept', object: current, balancer, notices, drainMs, baseline: next, isAsBefore };
      }
      if (record.settled !== undefined) {
        const { settled: _, ...changing } = record;
        current = await this.#writer.writeRecord(current, changing, context.signal);
      }
      const error = await this.#takeAll(current, observed, steps, desired.listenerName, context);
      if (error !== undefined) return { kind: 'refused', object: current, balancer: observed.balancer, notices, error };
      if (steps.some(({ kind }) => kind === 'delete'))
        current = await this.#writer.writeRecord(current, nextRecord(current, desired.source), context.signal);
    }
    throw new StepError('the load balancer keeps changing: another program writes it too');
  }

  /**
   * Compares, and publishes the Pods that are to be registered; those that must not be are left out.
   * @returns undefined while it is not known what may be registered. @throws KubeError, StepError
   */
  async #compare(
    key: string,
    desired: DesiredLoadBalancer,
    observed: ObservedLoadBalancer | undefined,
    { signal }: CallContext,
  ) {
    const compare = (wanted: DesiredLoadBalancer) =>
      diffLoadBalancer(
        wanted,
        observed,
        (target) => this.#drains.isDrained(observed?.balancer.loadBalancerId ?? '', target),
        (target) => this.#serving.serves(target),
      );
    const diff = compare(desired);
    const refused = observed === undefined ? [] : await this.#published.admit(key, diff.steps, signal);
    if (refused === undefined) return undefined;
    return refused.length === 0
      ? { ...diff, isRefused: false }
      : { ...compare(withoutPods(desired, refused)), isRefused: true };
  }

  /** Looks whether targets may be drained that are held; undefined: they may. @throws CloudError */
  async #look(
    { balancer: { loadBalancerId }, targets }: ObservedLoadBalancer,
    held: readonly Target[],
    context: CallContext,
  ): Promise<Extract<KeepResult, { readonly kind: 'again' }> | undefined> {
    const answer = await this.#serving.look({ loadBalancerId, targets, held }, context);
    if (answer === 'drain') return undefined;
    if (answer === 'wait') return { kind: 'again', afterMs: SOON_MS, notices: [] };
    const shown = held.slice(0, 3).map(({ ip, port }) => `${ip}:${port}`);
    const message = `no new target of ${loadBalancerId} is healthy, so ${shown.join(', ')} stay; look at the health checks, and at the security groups of what is behind the new targets`;
    return { kind: 'again', afterMs: HELD_MS, notices: [remark('UnAvailableLoadBalancer', message)] };
  }

  /** Forgets a Service, and its load balancer where it is known. */
  forget(key: string, loadBalancerId: string | undefined): void {
    this.#drift.forget(key);
    if (loadBalancerId !== undefined) this.#drains.forget(loadBalancerId);
  }

  /**
   * Writes which load balancer is next, when the one on record is released and another one is asked for.
   * @returns undefined when none is
   */
  async #moveRecord(
    object: KubeObject,
    observed: ObservedLoadBalancer | undefined,
    first: LoadBalancerStep | undefined,
    { source, allowsAddressChange }: DesiredLoadBalancer,
    { signal }: CallContext,
  ): Promise<KubeObject | undefined> {
    const { loadBalancerId } = readRecord(readServiceHead(object));
    const wantedId = idOf(source);
    const isReleased =
      observed === undefined
        ? wantedId !== undefined && loadBalancerId !== undefined && loadBalancerId !== wantedId
        : allowsAddressChange &&
          (first === undefined || first.kind === 'create') &&
          compareIdentity(source, observed).length > 0;
    if (!isReleased) return undefined;
    return await this.#writer.writeRecord(object, nextRecord(object, source), signal);
  }

  /** Takes all steps. @returns the refusal of targets. @throws CloudError, StepError */
  async #takeAll(
    object: KubeObject,
    observed: ObservedLoadBalancer,
    steps: readonly LoadBalancerStep[],
    listenerName: string,
    context: CallContext,
  ): Promise<StepError | undefined> {
    const head = readServiceHead(object);
    const runner = new StepRunner(this.#deps, observed, listenerName);
    // Another load balancer is made in the next round.
    const contents = steps.flatMap((step) => (step.kind === 'create' ? [] : [step]));
    const isReplaced = contents.length < steps.length;
    const now = isReplaced ? contents.filter(({ kind }) => kind === 'delete' || kind === 'deleteListeners') : contents;
    // What is behind a target that drains is about to end.
    const drains = now.some(
      ({ kind, ...step }) => kind === 'setWeights' && 'targets' in step && hasDrain(step.targets),
    );
    const called: CallContext = drains ? { ...context, priority: 'pod' } : context;
    // A target that is refused keeps nothing else from being done.
    const refusals: StepError[] = [];
    for (const step of now) {
      try {
        await runner.run(step, called);
      } catch (error) {
        if (!(error instanceof StepError) || error.code !== 'TARGETS_REFUSED') throw error;
        refusals.push(error);
      }
    }
    if (refusals[0] !== undefined) return refusals[0];
    const areTargets = now.every(({ kind }) => kind === 'register' || kind === 'setWeights' || kind === 'deregister');
    const reason = areTargets ? 'UpdatedLoadBalancer' : 'EnsuredLoadBalancer';
    const message = `${observed.balancer.loadBalancerId}: ${summaryOf(now)}`;
    this.#reports.progress(head, { reason, message });
    return undefined;
  }

  /** Writes finalizer and id, before the first change of a load balancer. */
  async #ensureRecord(
    object: KubeObject,
    { balancer: { loadBalancerId } }: ObservedLoadBalancer,
    record: BalancerRecord,
    { signal }: CallContext,
  ): Promise<KubeObject> {
    const { hasFinalizer, annotations } = readServiceHead(object);
    const isShown = annotations[LOAD_BALANCER_ID_ANNOTATION] === loadBalancerId;
    if (hasFinalizer && isShown && record.loadBalancerId === loadBalancerId) return object;
    return await this.#writer.writeRecord(object, { serial: Math.max(1, record.serial), loadBalancerId }, signal);
  }

  /**
   * Makes a load balancer, with a token that is on record before.
   * @returns the Service with the id; undefined when it is not known yet what became of the creation
   */
  async #create(
    object: KubeObject,
    { spec }: Extract<LoadBalancerStep, { readonly kind: 'create' }>,
    record: BalancerRecord,
    owner: string,
    context: CallContext,
  ): Promise<KubeObject | undefined> {
    const { loadBalancers } = this.#deps.cloud;
    const head = readServiceHead(object);
    const isUnderWay = record.serial > 0 && record.loadBalancerId === undefined;
    const serial = isUnderWay ? record.serial : record.serial + 1;
    // The write fails when the Service has changed since it was read.
    const recorded = await this.#writer.writeRecord(object, { serial }, context.signal);
    this.#reports.progress(head, { reason: 'EnsuringLoadBalancer', message: 'Ensuring load balancer' });
    const clientToken = tokenOf(owner, serial);
    try {
      const task = await loadBalancers.create({ ...spec, clientToken }, context);
      const outcome = await loadBalancers.settle(task, context);
      const [loadBalancerId] = outcome.kind === 'done' ? outcome.loadBalancerIds : [];
      if (loadBalancerId !== undefined)
        return await this.#writer.writeRecord(recorded, { serial, loadBalancerId }, context.signal);
      if (outcome.kind === 'lost' && this.#isLost(clientToken))
        await this.#writer.writeRecord(recorded, { serial: serial + 1 }, context.signal);
      if (outcome.kind !== 'failed') return undefined;
      await this.#writer.writeRecord(recorded, { serial: serial + 1 }, context.signal);
      throw new StepError(`the cloud did not make the load balancer: ${outcome.reason}`);
    } catch (error) {
      if (!isCloudError(error)) throw error;
      const isOver = error.code === TOKEN_USED_UP || (error.code === OTHER_REQUEST && this.#isLost(clientToken));
      if (!isOver && error.code !== OTHER_REQUEST) throw error;
      if (isOver) await this.#writer.writeRecord(recorded, { serial: serial + 1 }, context.signal);
      return undefined;
    }
  }

  /** Tells whether something was not found a minute ago either: an answer may be as of a while ago. */
  #isLost(what: string): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const sinceMs = this.#lostSinceMs.get(what) ?? nowMs;
    this.#lostSinceMs.set(what, sinceMs);
    if (nowMs - sinceMs < APPEARS_MS) return false;
    this.#lostSinceMs.delete(what);
    return true;
  }
}

/** Leaves out Pods that must not be registered. */
function withoutPods(desired: DesiredLoadBalancer, ips: readonly string[]): DesiredLoadBalancer {
  const listeners = desired.listeners.map(({ targets, ...listener }) => {
    if (targets === undefined) return listener;
    return {
      ...listener,
      targets: targets.filter(({ ip, instanceId }) => instanceId !== undefined || !ips.includes(ip)),
    };
  });
  return { ...desired, listeners };
}

/** Returns the record of the next load balancer, when the present one is released. */
function nextRecord(object: KubeObject, source: BalancerSource): BalancerRecord {
  const { serial } = readRecord(readServiceHead(object));
  const loadBalancerId = idOf(source);
  return loadBalancerId === undefined ? { serial: serial + 1 } : { serial, loadBalancerId };
}

function hasDrain(targets: readonly (StepTarget & { readonly weight?: number })[]): boolean {
  return targets.some(({ weight }) => weight === 0);
}

function idOf(source: BalancerSource): string | undefined {
  return source.kind === 'existing' ? source.loadBalancerId : undefined;
}

/** Counts the steps by their kinds, for people. */
function summaryOf(steps: readonly LoadBalancerStep[]): string {
  const counts = Map.groupBy(steps, ({ kind }) => kind);
  return [...counts].map(([kind, all]) => (all.length === 1 ? kind : `${kind} ${all.length} times`)).join(', ');
}
