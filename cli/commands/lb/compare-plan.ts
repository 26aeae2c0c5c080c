import type { Target } from '../../../cloud/targets.ts';
import { decideAdoption } from '../../../cloud-controller-manager/balancers/decide-adoption.ts';
import type { DesiredLoadBalancer } from '../../../cloud-controller-manager/balancers/desired-load-balancer.ts';
import { diffLoadBalancer } from '../../../cloud-controller-manager/balancers/diff-load-balancer.ts';
import { withSourceGroup } from '../../../cloud-controller-manager/balancers/diff-security-groups.ts';
import { followTargets } from '../../../cloud-controller-manager/balancers/follow-targets.ts';
import type { LoadBalancerStep } from '../../../cloud-controller-manager/balancers/load-balancer-step.ts';
import type { Notice } from '../../../cloud-controller-manager/balancers/notice.ts';
import type { OwnerPlan } from '../../../cloud-controller-manager/balancers/owner-plan.ts';
import { targetIdOf } from '../../../cloud-controller-manager/balancers/target-place.ts';
import type { ObservedBalancer } from './find-observed.ts';
import type { LbCloud } from './lb-facts.ts';

/** What a plan needs beside the facts. */
export type PlanTerms = { readonly cloud: LbCloud; readonly clusterId: string; readonly vpcId: string };

/** What is compared with the cloud: an owner, what is planned for it, and its load balancer. */
type PlannedOwner = {
  readonly kind: 'service' | 'ingress';
  readonly listenerName: string;
  /** Its notices are all that were found so far. */
  readonly plan: Pick<OwnerPlan, 'desired' | 'listeners' | 'ruleListeners' | 'notices'>;
  readonly observed: ObservedBalancer | undefined;
};

/** What the controller would do and report. */
type Comparison = { readonly steps: readonly LoadBalancerStep[]; readonly notices: readonly Notice[] };

const SHOWN = 10;

/** Compares what is planned for an owner with its load balancer. While it is refused its targets follow, and nothing else changes. */
export function comparePlan(
  { kind, listenerName, plan, observed }: PlannedOwner,
  { vpcId, clusterId }: PlanTerms,
): Comparison {
  const { desired, listeners, ruleListeners, notices } = plan;
  const refusal = desired === undefined ? undefined : adoptionOf(desired, observed, kind, vpcId, clusterId);
  if (refusal !== undefined) return { steps: [], notices: [...notices, refusal] };
  const compare = (one: DesiredLoadBalancer) => {
    const draining = new Set((observed?.targets ?? []).filter(({ weight }) => weight === 0).map(targetIdOf));
    return diffLoadBalancer(
      withSourceGroup(one, observed),
      observed,
      (target) => draining.has(targetIdOf(target)),
      servingOf(observed),
    );
  };
  const diff = desired === undefined || notices.some(({ blocks }) => blocks) ? undefined : compare(desired);
  const asked = [...notices, ...(diff?.notices ?? [])];
  const compared = ({ steps, held, awaited }: ReturnType<typeof compare>): Comparison => ({
    steps,
    notices: [
      ...asked,
      ...noticeOf(held, 'keep their weight until another target of the same place is healthy'),
      ...noticeOf(awaited, 'are awaited: redirects and rules that go are changed when one of them is healthy'),
    ],
  });
  if (diff !== undefined && !diff.notices.some(({ blocks }) => blocks)) return compared(diff);
  if (observed === undefined || listeners === undefined) return { steps: [], notices: asked };
  // All else is refused.
  const { loadBalancerId } = observed.balancer;
  return compared(compare(followTargets(listenerName, loadBalancerId, { listeners, ruleListeners })));
}

function adoptionOf(
  { source }: DesiredLoadBalancer,
  observed: ObservedBalancer | undefined,
  kind: PlannedOwner['kind'],
  vpcId: string,
  clusterId: string,
): Notice | undefined {
  if (observed === undefined || source.kind !== 'existing') return undefined;
  if (observed.balancer.loadBalancerId !== source.loadBalancerId) return undefined;
  const { kind: _, ...asked } = source;
  return decideAdoption(observed, { ...asked, kind, clusterId, vpcId });
}

/** Where no target is healthy, each counts as serving: there is nothing to lose. */
function servingOf(observed: ObservedBalancer | undefined): (target: Target) => boolean {
  const healthy = (observed?.health ?? []).filter(({ state }) => state === 'healthy' || state === 'unchecked');
  const ids = new Set(healthy.map(targetIdOf));
  return (target) => ids.size === 0 || ids.has(targetIdOf(target));
}

function noticeOf(targets: readonly Target[] = [], what: string): readonly Notice[] {
  if (targets.length === 0) return [];
  const shown = targets.slice(0, SHOWN).map(({ ip, port }) => `${ip}:${port}`);
  const more = targets.length > SHOWN ? ` and ${targets.length - SHOWN} more` : '';
  return [{ reason: 'UnAvailableLoadBalancer', message: `${shown.join(', ')}${more} ${what}`, blocks: false }];
}
