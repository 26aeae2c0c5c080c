import type { RoutePlan } from './decide-routes.ts';

/**
 * Leaves out of a plan the creations that would exceed the quota of a place, and says so of each: a
 * call that is certain to be refused is not made. A move needs no quota, as the old route goes first.
 * @param count number of routes that are there, those of others included
 * @param quota most routes that the place takes; undefined: not known
 */
export function limitByQuota(plan: RoutePlan, count: number, quota: number | undefined): RoutePlan {
  if (quota === undefined) return plan;
  const budget = Math.max(0, quota - count);
  if (plan.create.length <= budget) return plan;
  const message = `it would exceed the quota of ${quota} routes; have the quota raised, or delete routes that are not needed`;
  const full = plan.create.slice(budget).map((one) => ({ ...one, message: `no route to ${one.cidr}: ${message}` }));
  return { ...plan, create: plan.create.slice(0, budget), full };
}
