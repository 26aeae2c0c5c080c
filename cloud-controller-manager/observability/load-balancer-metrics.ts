import type { MetricFactory } from '../../observability/metric-factory.ts';

/** What became of an orphan in one sweep. `kept`: something forbids its deletion; `failed`: the cloud refused it. */
export type OrphanOutcome = 'reported' | 'deleted' | 'kept' | 'failed';

/** Callbacks of the service controller. */
export type LoadBalancersObserver = {
  /** After each sweep: how many load balancers have no Service. */
  onOrphans(count: number): void;
  /** What became of one of them. */
  onOrphanOutcome(outcome: OrphanOutcome): void;
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
  return {
    onOrphans: (count) => orphans.set(count),
    onOrphanOutcome: (outcome) => outcomes.inc({ outcome }),
  };
}
