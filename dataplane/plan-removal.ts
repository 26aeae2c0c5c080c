import type { RouteState, RuleState } from './desired.ts';
import { routeKey, ruleKey } from './desired.ts';
import type { NodeNetwork, PodNetwork } from './network.ts';
import type { Operation } from './operation.ts';
import { planPod } from './plan-pod.ts';

/** The kernel objects of one Pod, besides its links. */
type PodRemoval = { readonly rules: readonly RuleState[]; readonly routes: readonly RouteState[] };

const RULE_MODES = ['compact', 'per-pod'] as const;

/**
 * Plans what DEL deletes of one Pod: all rules and routes of its plan, in both rule modes, since a change of the mode may be in
 * progress. A route to a link is deleted only on a link of this Pod: its address may be routed to the link of a new sandbox already.
 * The preferred source is left out, and the kernel then ignores it: the node's address may have changed since ADD.
 * @param ifindexes The Pod's links on the host; without one there are no routes to links to delete
 */
export function planRemoval(node: NodeNetwork, pod: PodNetwork, ifindexes: readonly number[]): PodRemoval {
  const { ifindex: _known, ...hostVeth } = pod.hostVeth;
  const links = [hostVeth, ...ifindexes.map((ifindex) => ({ ...hostVeth, ifindex }))];
  const plans = RULE_MODES.flatMap((ruleMode) =>
    links.map((link) => planPod({ ...node, ruleMode }, { ...pod, hostVeth: link }).host),
  );
  const rules = [...new Map(plans.flatMap((plan) => plan.rules).map((rule) => [ruleKey(rule), rule])).values()];
  const routes = plans.flatMap((plan) => plan.routes).map(({ prefsrc: _ignored, ...route }) => route);
  return { rules, routes: [...new Map(routes.map((route) => [`${routeKey(route)} ${route.oif}`, route])).values()] };
}

/**
 * Lists the deletions in their order. The rules to the Pod go first: what refuses packets for want of a Pod comes after
 * them. Those from it go last: until its routes are gone the kernel takes packets from the Pod, and only they keep these
 * from the primary interface.
 */
export function removalsOf({ rules, routes }: PodRemoval): readonly Operation[] {
  const deleteRule = (rule: RuleState): Operation => ({ kind: 'delete-rule', rule });
  return [
    ...rules.filter(({ dst }) => dst !== undefined).map(deleteRule),
    ...routes.map((route): Operation => ({ kind: 'delete-route', route })),
    ...rules.filter(({ dst }) => dst === undefined).map(deleteRule),
  ];
}
