import type { CallContext } from '../../cloud/cloud.ts';
import type { Target } from '../../cloud/targets.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { mapTargets } from './desired-places.ts';
import { diffLoadBalancer } from './diff-load-balancer.ts';
import type { LoadBalancerStep } from './load-balancer-step.ts';
import { type Notice, remark } from './notice.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';
import type { OwnerAddresses } from './owner-addresses.ts';
import { RefusedTargets } from './refused-targets.ts';
import { ServingTargets } from './serving-targets.ts';
import { targetIdOf } from './target-place.ts';

/** What is waited for. */
type Wait = { readonly afterMs: number; readonly notices: readonly Notice[] };

type Doubt = { readonly sinceMs: number; readonly ips: readonly string[] };

const SOON_MS = 2_000;
/** New targets are not healthy for long. */
const HELD_MS = 15_000;
const DOUBT = { usualMs: 60_000, laterMs: 60_000 } as const;
/** Addresses in a message; the others are left out. */
const SHOWN = 3;

/**
 * Compares load balancers with what Services ask for, and knows of the targets of each Service what only time tells: since
 * when they drain, which serve, and which may not be registered now.
 */
export class BalancerComparer {
  readonly #clock: ControllerDeps['clock'];
  readonly #published: Pick<OwnerAddresses, 'admit' | 'isReading'>;
  readonly #drains: DrainTimes;
  readonly #serving: ServingTargets;
  readonly #refused: RefusedTargets;
  /** By Service: Pods whose addresses may not be registered, as their nodes have it. */
  readonly #doubts = new Map<string, Doubt>();

  constructor(
    deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>,
    published: Pick<OwnerAddresses, 'admit' | 'isReading'>,
  ) {
    this.#clock = deps.clock;
    this.#published = published;
    this.#drains = new DrainTimes(deps.clock);
    this.#serving = new ServingTargets(deps);
    this.#refused = new RefusedTargets(deps.clock);
  }

  /** The targets that the cloud refused. */
  get refused(): RefusedTargets {
    return this.#refused;
  }

  /** Notes a load balancer as it is now. */
  note(service: string, desired: DesiredLoadBalancer, observed: ObservedLoadBalancer): void {
    this.#drains.note(service, observed.targets);
    this.#serving.note(service, observed.targets);
    this.#refused.retain(service, desired, observed);
  }

  /**
   * Compares, and publishes the Pods that are to be registered; those that must not be are left out. What drains beside others
   * does not wait for the lists.
   * @returns undefined while it is not known what may be registered. @throws KubeError, StepError
   */
  async compare(
    service: string,
    desired: DesiredLoadBalancer,
    observed: ObservedLoadBalancer | undefined,
    signal: AbortSignal,
  ): Promise<ReturnType<typeof diffLoadBalancer> | undefined> {
    const compare = (wanted: DesiredLoadBalancer) =>
      diffLoadBalancer(
        wanted,
        observed,
        (target) => this.#drains.isDrained(service, target),
        (target) => this.#serving.serves(service, target),
        (target) => this.#refused.isHeld(service, target),
        this.#serving.hasWaited(service),
      );
    const diff = compare(desired);
    const drains = this.#published.isReading ? drainsBeforeOthers(diff.steps) : [];
    if (drains.length > 0) return { ...diff, steps: drains };
    const ips = observed === undefined ? [] : await this.#published.admit(service, diff.steps, signal);
    if (ips === undefined) return undefined;
    if (ips.length === 0) {
      this.#doubts.delete(service);
      return diff;
    }
    const { sinceMs = this.#clock.monotonicMs() } = this.#doubts.get(service) ?? {};
    this.#doubts.set(service, { sinceMs, ips });
    return compare(withoutPods(desired, ips));
  }

  /**
   * Looks whether targets may be drained that are held, and rules and redirects changed that wait.
   * @returns undefined: some may. @throws CloudError
   */
  async waitForSuccessors(
    service: string,
    { balancer: { loadBalancerId }, targets }: ObservedLoadBalancer,
    { held = [], awaited = [] }: Pick<ReturnType<typeof diffLoadBalancer>, 'held' | 'awaited'>,
    context: CallContext,
  ): Promise<Wait | undefined> {
    const answer = await this.#serving.look({ service, loadBalancerId, targets, held, awaited }, context);
    if (answer === 'drain') return undefined;
    if (answer === 'wait') return { afterMs: SOON_MS, notices: [] };
    const shown = shownOf((held.length > 0 ? held : awaited).map(({ ip, port }) => `${ip}:${port}`));
    const what = held.length > 0 ? `so ${shown} stay` : `as ${shown}, so the rules and redirects before them stay`;
    const message = `no new target of ${loadBalancerId} is healthy, ${what}; look at the health checks, and at the security groups of what is behind the new targets`;
    return { afterMs: HELD_MS, notices: [remark('UnAvailableLoadBalancer', message)] };
  }

  /**
   * Notes that nothing is left to do now.
   * @returns how long until a target has drained, or is tried again: infinite when none waits; and whether the load balancer
   * is as desired, but for what a notice says
   */
  finish(service: string, { targets }: ObservedLoadBalancer): Wait & { readonly isDone: boolean } {
    this.#serving.release(service);
    const nowMs = this.#clock.monotonicMs();
    const { sinceMs = nowMs, ips = [] } = this.#doubts.get(service) ?? {};
    const isDoubted = ips.length > 0;
    // Their Pods have ended, as a rule, which their Service shows soon.
    if (isDoubted && nowMs - sinceMs < DOUBT.usualMs) return { afterMs: SOON_MS, notices: [], isDone: false };
    const afterMs = Math.min(
      this.#drains.nextMs(service, targets),
      this.#refused.nextMs(service),
      isDoubted ? DOUBT.laterMs : Number.POSITIVE_INFINITY,
    );
    const message = `not registered: ${shownOf(ips)}, as the NodeENIConfig of the node does not have the address as assigned, or it is offered back; look at the ENIs of the node, and at ipamd. It is tried again by itself`;
    return { afterMs, notices: isDoubted ? [remark('DirectAccessImpossible', message)] : [], isDone: true };
  }

  /** The addresses that are no targets of a Service though it asks for them. */
  refusedIps(service: string): readonly string[] {
    return [...this.#refused.ipsOf(service), ...(this.#doubts.get(service)?.ips ?? [])];
  }

  forget(service: string): void {
    this.#doubts.delete(service);
    for (const one of [this.#drains, this.#refused, this.#serving]) one.forget(service);
  }
}

function shownOf(names: readonly string[]): string {
  return names.slice(0, SHOWN).join(', ');
}

/** The weights that fall to 0 before anything is registered: other targets serve. */
function drainsBeforeOthers(steps: readonly LoadBalancerStep[]): readonly LoadBalancerStep[] {
  const first = steps.findIndex(({ kind }) => kind === 'register');
  return steps
    .slice(0, Math.max(0, first))
    .filter((step) => step.kind === 'setWeights' && step.targets.every(({ weight }) => weight === 0));
}

/** Leaves out Pods that must not be registered. */
function withoutPods(desired: DesiredLoadBalancer, ips: readonly string[]): DesiredLoadBalancer {
  return mapTargets(desired, (targets) =>
    targets.filter(({ ip, instanceId }) => instanceId !== undefined || !ips.includes(ip)),
  );
}

/** How long a target with weight 0 stays registered, so that its connections can end. */
const DRAIN_MS = 60_000;

/** Since when targets have weight 0. A new process counts again. */
class DrainTimes {
  readonly #clock: Clock;
  /** By Service, and by target: others may have targets on the same load balancer. */
  readonly #sinceMs = new Map<string, ReadonlyMap<string, number>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes the targets of a Service as they are now; those that are not among them are forgotten. */
  note(service: string, targets: readonly Target[]): void {
    const known = this.#sinceMs.get(service);
    const nowMs = this.#clock.monotonicMs();
    const draining = targets.filter(({ weight }) => weight === 0).map(targetIdOf);
    if (draining.length === 0) this.#sinceMs.delete(service);
    else this.#sinceMs.set(service, new Map(draining.map((key) => [key, known?.get(key) ?? nowMs])));
  }

  /** Forgets a Service. */
  forget(service: string): void {
    this.#sinceMs.delete(service);
  }

  /** Reports whether a target had its time since it got weight 0. */
  isDrained(service: string, target: Target): boolean {
    return this.#remainingMs(service, target) === 0;
  }

  /** Returns how long the next of these targets still has; infinite when none waits. */
  nextMs(service: string, targets: readonly Target[]): number {
    const waiting = targets.map((target) => this.#remainingMs(service, target)).filter((ms) => ms > 0);
    return Math.min(Number.POSITIVE_INFINITY, ...waiting);
  }

  #remainingMs(service: string, target: Target): number {
    const since = this.#sinceMs.get(service)?.get(targetIdOf(target));
    return since === undefined ? Number.POSITIVE_INFINITY : Math.max(0, since + DRAIN_MS - this.#clock.monotonicMs());
  }
}
