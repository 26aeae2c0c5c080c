import { hasSetting } from './compare-settings.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { Drift } from './drift.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';
import { placeIdOf, placesOf, type RuleKey, ruleKeyOf, ruleListenerKeyOf } from './target-place.ts';

/** What listeners of layer 7 have. */
export type RuleContent = {
  readonly rules: Set<string>;
  /** By key of the rule that is redirected: where to, as `renderRedirect` has it. */
  readonly redirects: Map<string, string>;
};

/** Returns the rules that an owner has on a load balancer, and their redirects. */
export function rulesIn(
  { listeners, rewrites = [] }: ObservedLoadBalancer,
  { listenerName }: Pick<DesiredLoadBalancer, 'listenerName'>,
): RuleContent {
  const places = placesOf(listeners, listenerName);
  const redirects = rewrites.flatMap((one): readonly (readonly [string, string])[] => {
    const source = places.get(placeIdOf({ listenerId: one.sourceListenerId, ruleId: one.sourceRuleId }));
    const target = places.get(placeIdOf({ listenerId: one.targetListenerId, ruleId: one.targetRuleId }));
    return source === undefined ? [] : [[source, renderRedirect(target ?? one.targetRuleId, one.code)]];
  });
  return { rules: new Set([...places.values()].filter((one) => one.includes(' '))), redirects: new Map(redirects) };
}

/** Returns what was there before drifts that are left as they are. */
export function restoreRules({ rules, redirects }: RuleContent, left: readonly Drift[]): RuleContent {
  const before = { rules: new Set(rules), redirects: new Map(redirects) };
  for (const { field, of, was } of left) {
    if (field === 'rule' && was !== undefined) before.rules.add(of);
    if (field === 'rule' && was === undefined) before.rules.delete(of);
    if (field === 'redirect' && was !== 'none') before.redirects.set(of, was ?? '');
    if (field === 'redirect' && was === 'none') before.redirects.delete(of);
  }
  return before;
}

/** Finds what another client changed of rules. @param before undefined: what was there is not known */
export function findRuleDrift(
  desired: DesiredLoadBalancer,
  before: RuleContent | undefined,
  observed: ObservedLoadBalancer,
): readonly Drift[] {
  const now = rulesIn(observed, desired);
  const drifts = [...settingDrifts(desired, observed)];
  if (before === undefined) return drifts;
  for (const of of before.rules) if (!now.rules.has(of)) drifts.push({ field: 'rule', of, was: 'there' });
  for (const of of now.rules) if (!before.rules.has(of)) drifts.push({ field: 'rule', of, is: 'there' });
  for (const of of new Set([...before.redirects.keys(), ...now.redirects.keys()])) {
    const [was, is] = [before.redirects.get(of) ?? 'none', now.redirects.get(of) ?? 'none'];
    if (was !== is && now.rules.has(of)) drifts.push({ field: 'redirect', of, was, is });
  }
  return drifts;
}

/** Renders where a rule is redirected: `HTTPS/443 www.example.com/ by 301`. */
function renderRedirect(target: string, code: number | undefined): string {
  return code === undefined ? target : `${target} by ${code}`;
}

function settingDrifts(
  { ruleListeners = [], listenerName }: DesiredLoadBalancer,
  { listeners }: ObservedLoadBalancer,
): readonly Drift[] {
  const present = new Map(
    listeners.flatMap((one) => {
      const key = one.name === listenerName ? ruleListenerKeyOf(one) : undefined;
      if (key === undefined) return [];
      return (one.rules ?? []).map((rule) => [ruleKeyOf(key, rule), rule] as const);
    }),
  );
  return ruleListeners.flatMap(({ protocol, port, rules }) =>
    rules.flatMap((rule): readonly Drift[] => {
      const of: RuleKey = ruleKeyOf(`${protocol}/${port}`, rule);
      const is = present.get(of);
      if (is === undefined) return [];
      const changed = Object.entries(rule.settings).flatMap(([field, was]): readonly Drift[] => {
        const value: unknown = Reflect.get(is, field);
        // The key is one of the settings of a rule.
        const name = field as keyof typeof rule.settings;
        return hasSetting(was, value)
          ? []
          : [{ field: name, of, was: JSON.stringify(was), is: JSON.stringify(value) ?? 'none' }];
      });
      const ids = rule.certificate?.kind === 'existing' ? rule.certificate.ids.toSorted().join() : undefined;
      const shown = is.certificate?.certIds.toSorted().join() ?? 'none';
      return ids === undefined || ids === shown
        ? changed
        : [...changed, { field: 'certificate', of, was: ids, is: shown }];
    }),
  );
}
