import type { RoutePlan } from './decide-routes.ts';

/**
 * Leaves out of a plan the creations that would exceed the quota of a place, and reports a fault of each of their Nodes: a
 * call that is certain to be refused is not made. A move needs no quota, as the old route goes first.
 * @param count number of routes that are there, those of others included
 * @param quota most routes that the place takes; undefined: not known
 */
export function limitByQuota(plan: RoutePlan, count: number, quota: number | undefined): RoutePlan {
  if (quota === undefined) return plan;
  const budget = Math.max(0, quota - count);
  if (plan.create.length <= budget) return plan;
  const message = `it would exceed the quota of ${quota} routes; have the quota raised, or delete routes that are not needed`;
  const faults = plan.create
    .slice(budget)
    .map(({ node, cidr }) => ({ node, message: `no route to ${cidr}: ${message}` }));
  return { ...plan, create: plan.create.slice(0, budget), faults: [...plan.faults, ...faults] };
}
