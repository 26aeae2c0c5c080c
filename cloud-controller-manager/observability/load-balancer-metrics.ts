import type { MetricFactory } from '../../observability/metric-factory.ts';

/** What became of an orphan in one sweep. `kept`: something forbids its deletion; `failed`: the cloud refused it. */
type OrphanOutcome = 'reported' | 'deleted' | 'kept' | 'failed';

/** Callbacks of the service controller. */
export type LoadBalancersObserver = {
  /** After each sweep: how many load balancers have no Service. */
  onOrphans(count: number): void;
  /** What became of one of them. */
  onOrphanOutcome(outcome: OrphanOutcome): void;
  /** What another client changed of the load balancer of a Service, and was set again. */
  onDriftRepaired(fields: readonly string[]): void;
  /** What is left as another client changed it, by Service; empty: nothing. */
  onDriftLeft(service: string, fields: readonly string[]): void;
  /** How many Pods with ready containers wait for their readiness gate, by reason. */
  onGates(waiting: ReadonlyMap<string, number>): void;
};

/** Counts what happens to load balancers of Services. */
export function createLoadBalancersObserver(factory: MetricFactory): LoadBalancersObserver {
  const orphans = factory.gauge(
    'orphan_load_balancers',
    'Load balancers that the last sweep found with the tags of this cluster, and without their Service.',
  );
  const outcomes = factory.counter(
    'orphan_load_balancer_outcomes_total',
    'What was done about load balancers without a Service: reported, deleted, kept (something forbids it), failed.',
    ['outcome'],
  );
  const repaired = factory.counter(
    'load_balancer_drifts_repaired_total',
    'Changes of load balancers of Services by somebody else that were set again, by field.',
    ['field'],
  );
  const left = new Map<string, ReadonlySet<string>>();
  factory.gauge(
    'load_balancer_drifts',
    'Services whose load balancer somebody else changed, with --load-balancer-drift=report, by field.',
    ['field'],
    (gauge) => {
      const fields = [...left.values()].flatMap((its) => [...its]);
      for (const [field, all] of Map.groupBy(fields, (one) => one)) gauge.set({ field }, all.length);
    },
  );
  const gates = factory.gauge(
    'readiness_gates_pending',
    'Pods with ready containers whose readiness gate of load balancers is not True, by reason.',
    ['reason'],
  );
  return {
    onGates: (waiting) => {
      gates.reset();
      for (const [reason, count] of waiting) gates.set({ reason }, count);
    },
    onDriftRepaired: (fields) => {
      for (const field of fields) repaired.inc({ field });
    },
    onDriftLeft: (service, fields) => {
      if (fields.length === 0) left.delete(service);
      else left.set(service, new Set(fields));
    },
    onOrphans: (count) => orphans.set(count),
    onOrphanOutcome: (outcome) => outcomes.inc({ outcome }),
  };
}
