import type { CallContext } from '../../cloud/cloud.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import type { Target } from '../../cloud/targets.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { BalancerCreator } from './create-balancer.ts';
import { decideAdoption } from './decide-adoption.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { diffLoadBalancer, type ObservedLoadBalancer } from './diff-load-balancer.ts';
import { DrainTimes } from './drain-times.ts';
import { type Baseline, baselineOf } from './find-drift.ts';
import { type DriftDecision, DriftKeeper } from './keep-drift.ts';
import { existingIdOf, RecordKeeper } from './keep-record.ts';
import { type Notice, remark } from './notice.ts';
import { observeLoadBalancer } from './observe-load-balancer.ts';
import { ownerOf } from './plan-load-balancer.ts';
import type { AddressPublisher } from './publish-addresses.ts';
import { readRecord } from './read-record.ts';
import { readServiceHead, type ServiceHead } from './read-service.ts';
import { RefusedTargets } from './refused-targets.ts';
import { StepError } from './run-step.ts';
import type { ServiceReports } from './service-reports.ts';
import { ServingTargets } from './serving-targets.ts';
import { takeSteps } from './take-steps.ts';
import type { ServiceWriter } from './write-service.ts';

/** How far a load balancer is. */
type KeepResult =
  | {
      readonly kind: 'kept';
      readonly object: KubeObject;
      readonly balancer: LoadBalancer;
      readonly notices: readonly Notice[];
      /** Until a target has drained, or one that the cloud refused is tried again; infinite when none waits. */
      readonly waitMs: number;
      /** What later changes of others are compared with. */
      readonly baseline: Baseline;
      /** Whether nothing was changed, and no other client had changed anything. */
      readonly isAsBefore: boolean;
    }
  | KeepAgain;

type KeepAgain = { readonly kind: 'again'; readonly afterMs: number; readonly notices: readonly Notice[] };

/** Each round reads the load balancer, and takes the steps to the desired one. */
const MAX_ROUNDS = 5;
const SOON_MS = 2_000;
const ASK_AGAIN_MS = 20_000;
const REFUSED_MS = 60_000;
/** New targets are not healthy for long. */
const HELD_MS = 15_000;

/** Makes load balancers what is desired. What is made is on record before. */
export class BalancerKeeper {
  readonly #deps: ControllerDeps;
  readonly #reports: ServiceReports;
  readonly #records: RecordKeeper;
  readonly #creator: BalancerCreator;
  readonly #drains: DrainTimes;
  readonly #refused: RefusedTargets;
  readonly #serving: ServingTargets;
  readonly #drift: DriftKeeper;
  readonly #published: AddressPublisher;

  constructor(deps: ControllerDeps, writer: ServiceWriter, reports: ServiceReports, published: AddressPublisher) {
    this.#published = published;
    this.#deps = deps;
    this.#reports = reports;
    this.#records = new RecordKeeper(writer);
    this.#creator = new BalancerCreator(deps, writer, reports);
    this.#drains = new DrainTimes(deps.clock);
    this.#refused = new RefusedTargets(deps.clock);
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
    let current = object;
    let drift: DriftDecision | undefined;
    for (let round = 1; round <= MAX_ROUNDS; round++) {
      const head = readServiceHead(current);
      const view = await this.#observe(head, desired, context);
      if (view.kind === 'pending') return again(SOON_MS);
      const observed = view.kind === 'found' ? view.observed : undefined;
      const refusal = this.#adopt(desired, observed, vpcId);
      if (refusal !== undefined) return again(REFUSED_MS, [refusal]);
      if (observed !== undefined) this.#noteFound(head, observed, desired);
      // What differs after a change of ours is no change of others.
      drift ??= this.#drift.decide(head, desired, observed, baseline);
      const diff = await this.#compare(head.key, drift.desired, observed, context);
      // The lists of the nodes are being read.
      if (diff === undefined) return again(SOON_MS);
      const { steps } = diff;
      const [first] = steps;
      const moved = await this.#records.move(current, observed, first, desired, context.signal);
      if (moved !== undefined) {
        current = moved;
        continue;
      }
      const refused = observed === undefined ? [] : this.#refused.notices(head.key, observed.balancer.loadBalancerId);
      const notices = [...diff.notices, ...drift.notices, ...refused];
      if (notices.some(({ blocks }) => blocks)) return again(REFUSED_MS, notices);
      if (observed === undefined) {
        const made = await this.#create(current, first, context);
        if ('kind' in made) return { ...made, notices: [...notices, ...made.notices] };
        current = made.object;
        continue;
      }
      current = await this.#records.ensure(current, observed, context.signal);
      if (first === undefined && diff.held !== undefined) {
        const waits = await this.#look(head.key, observed, diff.held, context);
        if (waits === undefined) continue;
        return { ...waits, notices: [...notices, ...waits.notices] };
      }
      // Their Pods have ended, which their Service will show.
      if (first === undefined && diff.isRefused) return again(SOON_MS, notices);
      if (first === undefined) {
        const { balancer } = observed;
        this.#serving.release(head.key);
        const isAsBefore = round === 1 && drift.drifts.length === 0;
        const next = baselineOf(desired, observed, drift.left);
        const waitMs = this.#waitMs(head.key, observed);
        return { kind: 'kept', object: current, balancer, notices, waitMs, baseline: next, isAsBefore };
      }
      current = await this.#records.unsettle(current, context.signal);
      await this.#take(head, observed, steps, desired.listenerName, context);
      if (steps.some(({ kind }) => kind === 'delete'))
        current = await this.#records.next(current, desired.source, context.signal);
    }
    throw new StepError('the load balancer keeps changing: another program writes it too');
  }

  /** The addresses that the cloud refused as targets of a Service. */
  refusedIps(key: string): readonly string[] {
    return this.#refused.ipsOf(key);
  }

  /** Forgets a Service. */
  forget(key: string): void {
    for (const one of [this.#drift, this.#drains, this.#refused, this.#serving]) one.forget(key);
  }

  #observe(head: ServiceHead, { source, listenerName }: DesiredLoadBalancer, context: CallContext) {
    const owner = ownerOf(this.#deps.config.clusterId, head.uid);
    const loadBalancerId = readRecord(head).loadBalancerId ?? existingIdOf(source);
    return observeLoadBalancer(this.#deps, { owner, listenerName, loadBalancerId }, context);
  }

  /** Decides whether an existing load balancer may be used. @returns why not */
  #adopt(
    { source }: DesiredLoadBalancer,
    observed: ObservedLoadBalancer | undefined,
    vpcId: string,
  ): Notice | undefined {
    if (observed === undefined || observed.balancer.loadBalancerId !== existingIdOf(source)) return undefined;
    return decideAdoption(observed, vpcId, this.#deps.config.clusterId);
  }

  #noteFound({ key }: ServiceHead, observed: ObservedLoadBalancer, desired: DesiredLoadBalancer): void {
    const { loadBalancerId } = observed.balancer;
    this.#drains.note(key, observed.targets);
    this.#serving.note(key, observed.targets);
    this.#published.note(key, observed.targets);
    this.#creator.found(loadBalancerId);
    this.#refused.retain(key, desired, observed);
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
        (target) => this.#drains.isDrained(key, target),
        (target) => this.#serving.serves(key, target),
        (target) => this.#refused.isHeld(key, target),
      );
    const diff = compare(desired);
    const refused = observed === undefined ? [] : await this.#published.admit(key, diff.steps, signal);
    if (refused === undefined) return undefined;
    return refused.length === 0
      ? { ...diff, isRefused: false }
      : { ...compare(withoutPods(desired, refused)), isRefused: true };
  }

  /** Makes the load balancer, unless one of which is on record may still be found. @throws CloudError, KubeError, StepError */
  async #create(
    object: KubeObject,
    first: ReturnType<typeof diffLoadBalancer>['steps'][number] | undefined,
    context: CallContext,
  ): Promise<{ readonly object: KubeObject } | KeepAgain> {
    const head = readServiceHead(object);
    const { loadBalancerId } = readRecord(head);
    if (first?.kind !== 'create') return again(SOON_MS);
    if (loadBalancerId !== undefined) {
      if (!this.#creator.isLost(loadBalancerId)) return again(ASK_AGAIN_MS);
      const lost = this.#drift.decideLost(head, loadBalancerId);
      if (lost !== undefined) return again(REFUSED_MS, [lost]);
    }
    const owner = ownerOf(this.#deps.config.clusterId, head.uid);
    const made = await this.#creator.create(object, first, owner, context);
    return made === undefined ? again(SOON_MS) : { object: made };
  }

  async #take(
    head: ServiceHead,
    observed: ObservedLoadBalancer,
    steps: Parameters<typeof takeSteps>[2],
    listenerName: string,
    context: CallContext,
  ): Promise<void> {
    const taking = { cloud: this.#deps.cloud, refused: this.#refused, service: head.key, listenerName };
    const { summary, areTargets, refusals } = await takeSteps(taking, observed, steps, context);
    if (refusals.length > 0) return;
    const reason = areTargets ? 'UpdatedLoadBalancer' : 'EnsuredLoadBalancer';
    this.#reports.progress(head, { reason, message: `${observed.balancer.loadBalancerId}: ${summary}` });
  }

  /** Looks whether targets may be drained that are held; undefined: they may. @throws CloudError */
  async #look(
    service: string,
    observed: ObservedLoadBalancer,
    held: readonly Target[],
    context: CallContext,
  ): Promise<KeepAgain | undefined> {
    const { balancer, targets } = observed;
    const { loadBalancerId } = balancer;
    const answer = await this.#serving.look({ service, loadBalancerId, targets, held }, context);
    if (answer === 'drain') return undefined;
    if (answer === 'wait') return again(SOON_MS);
    const shown = held.slice(0, 3).map(({ ip, port }) => `${ip}:${port}`);
    const message = `no new target of ${loadBalancerId} is healthy, so ${shown.join(', ')} stay; look at the health checks, and at the security groups of what is behind the new targets`;
    return again(HELD_MS, [remark('UnAvailableLoadBalancer', message)]);
  }

  #waitMs(key: string, { targets }: ObservedLoadBalancer): number {
    return Math.min(this.#drains.nextMs(key, targets), this.#refused.nextMs(key));
  }
}

function again(afterMs: number, notices: readonly Notice[] = []): KeepAgain {
  return { kind: 'again', afterMs, notices };
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
