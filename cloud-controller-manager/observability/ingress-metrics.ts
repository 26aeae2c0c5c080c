import type { MetricFactory } from '../../observability/metric-factory.ts';

/** Callbacks of the ingress controller. */
export type IngressesObserver = {
  /** What is wrong with an Ingress (`namespace/name`) now: reasons of events; none: nothing. */
  onProblems(ingress: string, reasons: readonly string[]): void;
};

/** Counts what is wrong with Ingresses. */
export function createIngressesObserver(factory: MetricFactory): IngressesObserver {
  const known = new Map<string, ReadonlySet<string>>();
  factory.gauge(
    'ingress_problems',
    'Ingresses with which something is wrong now, by the reason of the event.',
    ['reason'],
    (gauge) => {
      const reasons = [...known.values()].flatMap((its) => [...its]);
      for (const [reason, all] of Map.groupBy(reasons, (one) => one)) gauge.set({ reason }, all.length);
    },
  );
  return {
    onProblems: (ingress, reasons) => {
      if (reasons.length === 0) known.delete(ingress);
      else known.set(ingress, new Set(reasons));
    },
  };
}
