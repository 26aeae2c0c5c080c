import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { DesiredRule, DesiredRuleListener } from './desired-rules.ts';
import type { DesiredTargets } from './desired-targets.ts';
import { type Drift, driftsByPlace } from './drift.ts';
import { type RuleKey, type RuleListenerKey, ruleKeyOf } from './target-place.ts';

/** Returns the targets of a place with drifts left as they are. */
type RespectTargets = (
  place: string,
  wanted: DesiredTargets,
  before: DesiredTargets,
  drifts: readonly Drift[],
) => Pick<DesiredTargets, 'targets'>;

/** `HTTPS/443 www.example.com/a by 301`. */
const REDIRECT = /^(?<protocol>HTTPS?)\/(?<port>\d+) (?<domain>[^/=~]*)(?<url>[/=~].*) by (?<code>301|302|307)$/;
const RULE = /^(?<protocol>HTTPS?)\/(?<port>\d+) (?<domain>[^/=~]*)(?<url>[/=~].*)$/;

/** Returns the desired listeners of layer 7 with drifts left as they are where the Ingress asks for the same as before. */
export function respectRuleDrift(
  { ruleListeners }: DesiredLoadBalancer,
  { ruleListeners: former = [] }: DesiredLoadBalancer,
  drifts: readonly Drift[],
  respectTargets: RespectTargets,
): Pick<DesiredLoadBalancer, 'ruleListeners'> {
  if (ruleListeners === undefined) return {};
  const byKey = new Map(
    former.flatMap((listener) => listener.rules.map((rule) => [ruleKeyOf(keyOf(listener), rule), rule] as const)),
  );
  const driftsOf = driftsByPlace(drifts);
  const isGone = (field: 'listener' | 'rule', of: string): boolean =>
    driftsOf(of).some((one) => one.field === field && one.of === of && one.is === undefined);
  const left = ruleListeners.flatMap((listener): readonly DesiredRuleListener[] => {
    const key = keyOf(listener);
    if (isGone('listener', key)) return [];
    const rules = listener.rules.flatMap((rule): readonly DesiredRule[] => {
      const of = ruleKeyOf(key, rule);
      const before = byKey.get(of);
      if (before === undefined) return [rule];
      if (isGone('rule', of)) return [];
      const its = driftsOf(of);
      return [{ ...respectRule(rule, before, its), ...respectTargets(of, rule, before, its) }];
    });
    return [{ ...listener, rules: [...rules, ...addedRules(key, rules, drifts)] }];
  });
  return { ruleListeners: left };
}

function respectRule(rule: DesiredRule, before: DesiredRule, drifts: readonly Drift[]): DesiredRule {
  const fields = new Set<string>(drifts.map(({ field }) => field));
  const isKept = (name: string, value: unknown): boolean =>
    fields.has(name) && JSON.stringify(value) === JSON.stringify(Reflect.get(before.settings, name));
  const settings = Object.fromEntries(Object.entries(rule.settings).filter(([name, value]) => !isKept(name, value)));
  const isSameCertificate = JSON.stringify(rule.certificate) === JSON.stringify(before.certificate);
  const redirect = drifts.find(({ field }) => field === 'redirect');
  const isSameRedirect = JSON.stringify(rule.redirect) === JSON.stringify(before.redirect);
  const { redirect: wanted, ...plain } = rule;
  const isLeft = redirect !== undefined && isSameRedirect;
  const present = isLeft ? redirectOf(redirect.is ?? '') : wanted;
  // It leads to a rule of others.
  const isForeign = isLeft && present === undefined && redirect.is !== 'none';
  return {
    ...plain,
    settings,
    ...(fields.has('certificate') && isSameCertificate ? { certificate: { kind: 'asIs' as const } } : {}),
    ...(present === undefined ? {} : { redirect: present }),
    ...(isForeign ? { keepsRedirect: true as const } : {}),
  };
}

function addedRules(
  listener: RuleListenerKey,
  present: readonly DesiredRule[],
  drifts: readonly Drift[],
): readonly DesiredRule[] {
  const known = new Set<RuleKey>(present.map((rule) => ruleKeyOf(listener, rule)));
  return drifts.flatMap(({ field, of, was }): readonly DesiredRule[] => {
    if (field !== 'rule' || was !== undefined || !of.startsWith(`${listener} `)) return [];
    const { domain, url } = RULE.exec(of)?.groups ?? {};
    if (domain === undefined || url === undefined || known.has(ruleKeyOf(listener, { domain, url }))) return [];
    return [{ domain, url, settings: {} }];
  });
}

function redirectOf(text: string): DesiredRule['redirect'] {
  const { protocol, port, domain = '', url = '', code } = REDIRECT.exec(text)?.groups ?? {};
  if (protocol === undefined) return undefined;
  return {
    protocol: protocol === 'HTTPS' ? 'HTTPS' : 'HTTP',
    port: Number(port),
    ...{ domain, url },
    code: code === '302' ? 302 : code === '307' ? 307 : 301,
  };
}

function keyOf({ protocol, port }: DesiredRuleListener): RuleListenerKey {
  return `${protocol}/${port}`;
}
