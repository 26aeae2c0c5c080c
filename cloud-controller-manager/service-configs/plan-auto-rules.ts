import type { DesiredRule, DesiredRuleListener } from '../balancers/desired-rules.ts';
import type { LoadBalancerConfig } from './l4-settings.ts';
import { firstBy, indexRuleEntries, pathOf } from './rule-entry.ts';

type L7Listener = NonNullable<LoadBalancerConfig['l7Listeners']>[number];
type Domain = NonNullable<L7Listener['domains']>[number];
type RuleEntry = NonNullable<Domain['rules']>[number];

/** Every answer of HTTP counts: 1xx to 5xx. */
const ALL_CODES = 31;

/**
 * Plans the entries of a configuration that is made for an Ingress: one for each path of each host of each listener, in their
 * order. A rule that redirects has none, as it has no targets. An entry that is there stays as people have changed it, also
 * one of a single url; one whose rule is gone goes. @returns undefined when nothing changes
 */
export function planAutoRules(
  listeners: readonly DesiredRuleListener[],
  present: readonly L7Listener[] | undefined,
): readonly L7Listener[] | undefined {
  const planned = listeners.flatMap(({ protocol, port, rules }): readonly L7Listener[] => {
    const serving = rules.filter(({ redirect }) => redirect === undefined);
    if (serving.length === 0) return [];
    const found = present?.find((entry) => entry.protocol === protocol && entry.port === port);
    const domains = domainsOf(serving, found?.domains);
    return [found !== undefined && isSame(found.domains, domains) ? found : { ...found, protocol, port, domains }];
  });
  return isSame(present, planned) ? undefined : planned;
}

function isSame<T>(present: readonly T[] | undefined, planned: readonly T[]): boolean {
  return present?.length === planned.length && planned.every((one, at) => one === present[at]);
}

function domainsOf(rules: readonly DesiredRule[], present: readonly Domain[] = []): readonly Domain[] {
  const presentOf = firstBy(present, (entry) => entry.domain.toLowerCase());
  return [...Map.groupBy(rules, ({ domain }) => domain)].map(([domain, its]) => {
    const found = presentOf.get(domain);
    const entries = entriesOf(
      its.map(({ url }) => url),
      found?.rules,
    );
    return found !== undefined && isSame(found.rules, entries) ? found : { domain, ...found, rules: entries };
  });
}

function entriesOf(urls: readonly string[], present: readonly RuleEntry[] = []): readonly RuleEntry[] {
  const presentOf = Map.groupBy(present, ({ url }) => pathOf(url));
  return [...Map.groupBy(urls, pathOf)].flatMap(([path, its]) => {
    const kept = (presentOf.get(path) ?? []).filter(({ url }) => !url.startsWith('=') || its.includes(url));
    const find = indexRuleEntries(kept);
    return its.every((url) => find(url) !== undefined) ? kept : [...kept, defaultEntry(path)];
  });
}

/** What the cloud does without a configuration, written down so that people can change it. */
function defaultEntry(url: string): RuleEntry {
  return {
    url,
    forwardType: 'HTTP',
    session: { enable: false, sessionExpireTime: 30 },
    healthCheck: {
      ...{ enable: true, intervalTime: 5, healthNum: 3, unHealthNum: 3, timeout: 2 },
      ...{ httpCode: ALL_CODES, httpCheckPath: '/', httpCheckMethod: 'HEAD' },
    },
    scheduler: 'WRR',
  };
}
