import type { Clock } from '../../runtime/clock.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { CreateListenersStep, LoadBalancerStep, RuleStep } from './load-balancer-step.ts';
import { type Notice, remark } from './notice.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';
import { placesOf, ruleKeyOf } from './target-place.ts';

/** What the cloud refused of a load balancer of layer 7. */
export type StepRefusal = {
  /** What was refused, for people: `createRules HTTP/80 www.example.com/`. */
  readonly what: string;
  /** The cloud's own words. */
  readonly reason: string;
};

type Entry = StepRefusal & { readonly delayMs: number; readonly untilMs: number };

const FIRST_MS = 60_000;
const MAX_MS = 600_000;
/** Refusals in a message; the others are counted. */
const SHOWN = 3;

/**
 * The steps of listeners of layer 7 that the cloud refused, each with a time before which it is not tried again: one bad
 * rule keeps nothing else from being done. An entry lives as long as a comparison asks for the step.
 */
export class RefusedSteps {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #entries = new Map<string, Map<string, Entry>>();

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Notes refusals; each one of the same step doubles its delay. */
  note(owner: string, refusals: readonly StepRefusal[]): void {
    if (refusals.length === 0) return;
    const entries = this.#entries.get(owner) ?? new Map<string, Entry>();
    this.#entries.set(owner, entries);
    const nowMs = this.#clock.monotonicMs();
    for (const refusal of refusals) {
      const before = entries.get(refusal.what);
      const delayMs = before === undefined ? FIRST_MS : Math.min(MAX_MS, before.delayMs * 2);
      entries.set(refusal.what, { ...refusal, delayMs, untilMs: nowMs + delayMs });
    }
  }

  /** Returns the steps that are to be taken now, and forgets refusals of others than these. */
  open(owner: string, steps: readonly LoadBalancerStep[]): readonly LoadBalancerStep[] {
    const entries = this.#entries.get(owner);
    if (entries === undefined) return steps;
    const asked = new Set(steps.flatMap((step) => (isOfLayer7(step) ? partsOf(step).map(nameOf) : [])));
    for (const what of entries.keys()) if (!asked.has(what)) entries.delete(what);
    if (entries.size === 0) this.#entries.delete(owner);
    const nowMs = this.#clock.monotonicMs();
    const isHeld = (part: Layer7Step): boolean => (entries.get(nameOf(part))?.untilMs ?? nowMs) > nowMs;
    return steps.flatMap((step): readonly LoadBalancerStep[] => {
      if (!isOfLayer7(step)) return [step];
      const parts = partsOf(step);
      // As one call, where nothing of it is held.
      return parts.some(isHeld) ? parts.filter((part) => !isHeld(part)) : [step];
    });
  }

  /** Returns how long the next one of an owner waits to be tried again; infinite when none does. */
  nextMs(owner: string): number {
    const nowMs = this.#clock.monotonicMs();
    const left = [...(this.#entries.get(owner)?.values() ?? [])].map(({ untilMs }) => Math.max(0, untilMs - nowMs));
    return Math.min(Number.POSITIVE_INFINITY, ...left);
  }

  /** What the user of an owner has to know of them. */
  notices(owner: string, loadBalancerId: string): readonly Notice[] {
    const all = [...(this.#entries.get(owner)?.values() ?? [])];
    const [first] = all;
    if (first === undefined) return [];
    const shown = all.slice(0, SHOWN).map(({ what }) => what);
    const more = all.length > SHOWN ? ` and ${all.length - SHOWN} more` : '';
    const message = `the cloud refused of ${loadBalancerId}: ${shown.join('; ')}${more}: ${first.reason.replace(/\.$/, '')}. All else is done. Correct what the Ingress asks for, or raise the quota; it is tried again by itself`;
    return [remark('SyncLoadBalancerFailed', message)];
  }

  forget(owner: string): void {
    this.#entries.delete(owner);
  }
}

/** A step of listeners of layer 7: what the cloud refuses of it is noted, and others go on. */
export type Layer7Step = RuleStep | CreateListenersStep;

/** Reports whether a refusal of a step stops no other. */
export function isOfLayer7(step: LoadBalancerStep): step is Layer7Step {
  switch (step.kind) {
    case 'createListeners':
      return step.spec.protocol === 'HTTP' || step.spec.protocol === 'HTTPS';
    case 'createRules':
    case 'modifyRule':
    case 'modifyDomain':
    case 'createRewrites':
    case 'deleteRewrites':
    case 'deleteRules':
      return true;
    default:
      return false;
  }
}

/** Divides a step into those that the cloud can refuse by themselves. */
export function partsOf(step: Layer7Step): readonly Layer7Step[] {
  switch (step.kind) {
    case 'createListeners':
      return step.spec.ports.map((port) => ({ ...step, spec: { ...step.spec, ports: [port] } }));
    case 'createRules':
      return step.rules.map((rule) => ({ ...step, rules: [rule] }));
    case 'createRewrites':
    case 'deleteRewrites':
      return divideRewrites(step);
    default:
      return [step];
  }
}

function divideRewrites(
  step: Extract<RuleStep, { readonly kind: 'createRewrites' | 'deleteRewrites' }>,
): readonly Layer7Step[] {
  return step.kind === 'createRewrites'
    ? step.rewrites.map((one) => ({ ...step, rewrites: [one] }))
    : step.rewrites.map((one) => ({ ...step, rewrites: [one] }));
}

/** Names a step with one part, for people and for comparison. */
export function nameOf(step: Layer7Step): string {
  switch (step.kind) {
    case 'createListeners':
      return `${step.kind} ${step.spec.protocol}/${step.spec.ports.map(({ port }) => port).join()}`;
    case 'createRules':
      return `${step.kind} ${step.rules.map((rule) => ruleKeyOf(step.listener, rule)).join()}`;
    case 'modifyRule':
      return `${step.kind} ${step.rule.key}`;
    case 'modifyDomain':
      return `${step.kind} ${step.listener} ${step.domain}`;
    case 'createRewrites':
      return `${step.kind} ${step.rewrites.map(({ source, target }) => `${source} to ${target}`).join()}`;
    case 'deleteRewrites':
      return `${step.kind} ${step.rewrites.map(({ sourceRuleId }) => sourceRuleId).join()}`;
    case 'deleteRules':
      return `${step.kind} ${step.ruleIds.slice(0, SHOWN).join()}`;
  }
}

/**
 * Leaves out what needs a listener or rule that neither is there nor is made by one of the steps: its creation was refused,
 * and is not tried now.
 */
export function withKnownPlaces(
  steps: readonly LoadBalancerStep[],
  observed: ObservedLoadBalancer | undefined,
  { listenerName, ruleListeners }: Pick<DesiredLoadBalancer, 'listenerName' | 'ruleListeners'>,
): readonly LoadBalancerStep[] {
  if (observed === undefined || ruleListeners === undefined) return steps;
  const ours = observed.listeners.filter(({ name }) => name === listenerName);
  const listeners = new Set(ours.map(({ protocol, port }) => `${protocol}/${port}`));
  const places = new Set<string>(placesOf(ours, listenerName).values());
  return steps.flatMap((step): readonly LoadBalancerStep[] => {
    switch (step.kind) {
      case 'createListeners':
        for (const { port } of step.spec.ports) listeners.add(`${step.spec.protocol}/${port}`);
        return [step];
      case 'createRules':
        if (!listeners.has(step.listener)) return [];
        for (const rule of step.rules) places.add(ruleKeyOf(step.listener, rule));
        return [step];
      case 'register': {
        const targets = step.targets.filter(({ place }) => places.has(place));
        return targets.length === 0 ? [] : [{ ...step, targets }];
      }
      case 'createRewrites': {
        const rewrites = step.rewrites.filter(({ source, target }) => places.has(source) && places.has(target));
        return rewrites.length === 0 ? [] : [{ ...step, rewrites }];
      }
      default:
        return [step];
    }
  });
}
