import type { Listener } from '../../cloud/listeners.ts';
import type { DesiredRule, DesiredRuleListener } from './desired-rules.ts';
import { type RuleListenerKey, ruleListenerKeyOf } from './target-place.ts';

/** A rule that is there on HTTP, and its listener's port. */
type PlainRule = { readonly port: number; readonly domain: string; readonly url: string };

/**
 * Keeps a host on HTTP that is to be on HTTPS and has no certificate that can be used: it would be served nowhere. Its
 * paths that are there on HTTP have the targets that are asked for, and no redirect, until there is a certificate.
 * @param ours the listeners of the owner, as they are
 */
export function keepPlainRules(
  wanted: readonly DesiredRuleListener[],
  ours: readonly Listener[],
): readonly DesiredRuleListener[] {
  const lacking = wanted.flatMap((listener) =>
    listener.rules.filter((rule) => lacksCertificate(`${listener.protocol}/${listener.port}`, rule, ours)),
  );
  const present = ours.flatMap(({ protocol, port, rules = [] }): readonly PlainRule[] =>
    protocol === 'HTTP' ? rules.map(({ domain, url }) => ({ port, domain, url })) : [],
  );
  const kept = present.flatMap(({ port, domain, url }) => {
    const rule = lacking.find((one) => one.domain === domain && one.url === url);
    return rule === undefined ? [] : [{ port, rule: plain(rule) }];
  });
  if (kept.length === 0) return wanted;
  const byPort = Map.groupBy(kept, ({ port }) => port);
  // A port has one protocol: where HTTP stays, HTTPS waits.
  const others = wanted.filter(({ protocol, port }) => protocol === 'HTTPS' && !byPort.has(port));
  const http = wanted.filter(({ protocol }) => protocol === 'HTTP');
  const ports = [...new Set([...http.map(({ port }) => port), ...byPort.keys()])];
  const plainListeners = ports.map((port): DesiredRuleListener => {
    const its = (byPort.get(port) ?? []).map(({ rule }) => rule);
    const asked = http.find((one) => one.port === port)?.rules ?? [];
    const rest = asked.filter(({ domain, url }) => its.every((one) => one.domain !== domain || one.url !== url));
    return { protocol: 'HTTP', port, rules: [...rest, ...its] };
  });
  return [...others, ...plainListeners].toSorted((one, other) => one.port - other.port);
}

/** Reports whether a rule cannot be made for want of a certificate. */
export function lacksCertificate(
  key: RuleListenerKey,
  { certificate, domain }: DesiredRule,
  ours: readonly Listener[],
): boolean {
  if (certificate === undefined || certificate.kind === 'existing') return false;
  const listener = ours.find((one) => ruleListenerKeyOf(one) === key);
  return listener?.rules?.some((rule) => rule.domain === domain) !== true;
}

function plain({ certificate: _, redirect: __, ...rule }: DesiredRule): DesiredRule {
  return rule;
}
