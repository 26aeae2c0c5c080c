import type { HealthState } from '../../cloud/targets.ts';
import { OWNER_NAMES, type OwnerKind } from '../balancers/balancer-owner.ts';

/** A Service or an Ingress with direct access that selects a Pod, as the readiness gate of the Pod depends on it. */
export type GateOwner = {
  readonly kind: OwnerKind;
  /** `namespace/name`. */
  readonly key: string;
  /**
   * `unknown`: it is still to be looked at; `refused`: nothing of its load balancer is changed; `failing`: the cloud lets
   * it be neither changed nor read until a person changes something.
   */
  readonly state: 'unknown' | 'refused' | 'planned' | 'failing';
  /** Whether the Pod can be bound, and if so whether the quota allows it. */
  readonly binding: 'possible' | 'impossible' | 'overQuota';
  /** The listeners or rules that are to have the Pod. */
  readonly places: readonly GatePlace[];
};

/** A target that the Pod is to be. `missing`: it is not registered, or has weight 0. `refused`: the cloud does not take it. `unmade`: the listener or rule of its place is not there, or is called otherwise. */
export type GatePlace = {
  /** `TCP/80`, or a rule such as `HTTP/80 www.example.com/`. */
  readonly place: string;
  readonly ip: string;
  readonly port: number;
  readonly health: HealthState | 'missing' | 'refused' | 'unmade';
};

/** Reasons of the condition. The first four are why a Pod waits; the fourth and the first may also be why it waited in vain. */
type GateReason = 'NotRegistered' | 'HealthUnknown' | 'Unhealthy' | 'QuotaExceeded' | 'Registered' | 'NoLoadBalancer';

/** What the condition of a readiness gate should be. */
export type GateDecision = {
  readonly status: 'True' | 'False';
  readonly reason: GateReason;
  readonly message: string;
};

/** So long a Pod waits for what may never come: a quota, a Service or a target that is refused, a load balancer that fails, an endpoint. */
export const GIVE_UP_MS = 300_000;

/**
 * Decides the readiness gate of a Pod whose containers are ready. It is True when each owner with direct access that
 * selects the Pod has it registered and healthy, and when none does. What may never happen is waited for with a limit.
 * @param waitedMs how long the Pod has waited
 */
export function decideGate(owners: readonly GateOwner[], waitedMs: number): GateDecision {
  if (owners.length === 0)
    return { status: 'True', reason: 'NoLoadBalancer', message: 'no Service with direct access selects the Pod' };
  const waiting = owners.flatMap((owner) => waitingFor(owner)).toSorted((one, other) => rank(one) - rank(other));
  const [first] = waiting.filter(({ mayEnd }) => mayEnd || waitedMs < GIVE_UP_MS);
  if (first !== undefined) return { status: 'False', reason: first.reason, message: first.message };
  const [given] = waiting;
  if (given !== undefined)
    return { status: 'True', reason: given.reason, message: `${given.message}; it is not waited for any longer` };
  const isBound = owners.some(({ places }) => places.length > 0);
  return isBound
    ? { status: 'True', reason: 'Registered', message: `a healthy target of ${namesOf(owners)}` }
    : { status: 'True', reason: 'NoLoadBalancer', message: `${namesOf(owners)} cannot have the Pod as a target` };
}

type Waiting = { readonly reason: GateReason; readonly message: string; readonly mayEnd: boolean };

function waitingFor({ kind, key, state, binding, places }: GateOwner): readonly Waiting[] {
  const { object } = OWNER_NAMES[kind];
  const name = `${object} ${key}`;
  if (state === 'unknown') return [wait('NotRegistered', `the ${name} has not been looked at yet`)];
  if (state === 'refused')
    return [{ ...wait('NotRegistered', `the ${name} is refused: look at its events`), mayEnd: false }];
  if (state === 'failing' && places.length === 0 && binding === 'possible')
    return [{ ...wait('NotRegistered', `the load balancer of the ${name} fails: look at its events`), mayEnd: false }];
  if (binding === 'impossible') return [];
  if (binding === 'overQuota') {
    const message = `the load balancer of the ${name} has as many targets as the quota allows`;
    return [{ ...wait('QuotaExceeded', message), mayEnd: false }];
  }
  // Its slice comes soon; a Pod without the port that the Service names has none.
  if (places.length === 0)
    return [{ ...wait('NotRegistered', `the ${name} has no endpoint of the Pod yet`), mayEnd: false }];
  return places.flatMap(({ place, ip, port, health }) => {
    const target = `${ip}:${port} of ${place} of the ${name}`;
    if (health === 'missing' && state === 'failing') {
      const message = `the target ${target} is not registered, as its load balancer fails: look at the events of the ${object}`;
      return [{ ...wait('NotRegistered', message), mayEnd: false }];
    }
    if (health === 'missing') return [wait('NotRegistered', `the target ${target} is not registered yet`)];
    if (health === 'unmade') {
      const message = `the target ${target} waits for its ${ruleOrListener(place)}: look at the events of the ${object} if it does not come`;
      return [{ ...wait('NotRegistered', message), mayEnd: false }];
    }
    if (health === 'refused') {
      const message = `the cloud refuses the target ${target}: look at the events of the ${object}`;
      return [{ ...wait('NotRegistered', message), mayEnd: false }];
    }
    if (health === 'unhealthy') return [wait('Unhealthy', `the health check of the target ${target} fails`)];
    return health === 'unknown' ? [wait('HealthUnknown', `the target ${target} has not been checked yet`)] : [];
  });
}

function ruleOrListener(place: string): string {
  return place.includes(' ') ? 'rule' : 'listener';
}

function wait(reason: GateReason, message: string): Waiting {
  return { reason, message, mayEnd: true };
}

const RANKS: readonly GateReason[] = ['QuotaExceeded', 'NotRegistered', 'Unhealthy', 'HealthUnknown'];

function rank({ reason }: Waiting): number {
  return RANKS.indexOf(reason);
}

function namesOf(owners: readonly GateOwner[]): string {
  const names = owners
    .map(({ kind, key }) => (kind === 'service' ? key : `${OWNER_NAMES[kind].object} ${key}`))
    .toSorted();
  return names.length <= 3 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`;
}
