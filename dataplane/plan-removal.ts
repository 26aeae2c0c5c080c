import type { RouteState, RuleState } from './desired.ts';
import { ruleKey } from './desired.ts';
import type { NodeNetwork, PodNetwork } from './network.ts';
import { planPod } from './plan-pod.ts';

/** The kernel objects of one Pod, besides its links. */
type PodRemoval = { readonly rules: readonly RuleState[]; readonly routes: readonly RouteState[] };

const RULE_MODES = ['compact', 'per-pod'] as const;

/**
 * Plans what DEL deletes of one Pod: all rules and routes of its plan, in both rule modes, since a change of the mode may be in
 * progress. A route is deleted only on a link of this Pod: its address may be routed to the link of a new sandbox already.
 * The preferred source is left out, and the kernel then ignores it: the node's address may have changed since ADD.
 * @param ifindexes The Pod's links on the host; without one there are no routes to delete
 */
export function planRemoval(node: NodeNetwork, pod: PodNetwork, ifindexes: readonly number[]): PodRemoval {
  const inMode = (ruleMode: (typeof RULE_MODES)[number], link: PodNetwork) => planPod({ ...node, ruleMode }, link).host;
  const rules = RULE_MODES.flatMap((ruleMode) => inMode(ruleMode, pod).rules);
  const routes = RULE_MODES.flatMap((ruleMode) =>
    ifindexes.flatMap((ifindex) => inMode(ruleMode, { ...pod, hostVeth: { ...pod.hostVeth, ifindex } }).routes),
  );
  return {
    rules: [...new Map(rules.map((rule) => [ruleKey(rule), rule])).values()],
    routes: routes.map(({ prefsrc: _ignored, ...route }) => route),
  };
}
