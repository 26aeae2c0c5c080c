import type { HealthCheck } from '../../cloud/health-check.ts';
import type { RuleSettings } from '../../cloud/rules.ts';
import type { DesiredRule, DesiredRuleListener } from '../balancers/desired-rules.ts';
import { checkTimesOf, isTooLong, sessionSecondsOf } from './configured-times.ts';
import type { LoadBalancerConfig } from './l4-settings.ts';
import { indexRuleEntries, pathOf } from './rule-entry.ts';

type L7Listener = NonNullable<LoadBalancerConfig['l7Listeners']>[number];
type Domain = NonNullable<L7Listener['domains']>[number];
type RuleEntry = NonNullable<Domain['rules']>[number];
type RuleCheck = NonNullable<RuleEntry['healthCheck']>;

/** Listeners with their settings, and what of the configuration has no effect. */
type ConfiguredRules = { readonly listeners: readonly DesiredRuleListener[]; readonly unused: readonly string[] };

/**
 * Puts the settings of a TkeServiceConfig over those that an Ingress asks for. A setting that an entry leaves out stays as it is
 * in the cloud; a rule without an entry is as without a configuration. Entries of listeners that the Ingress has not may be of others,
 * and are not reported.
 * @param config `unknown`: there is one that cannot be read, so that rules keep what they have
 */
export function configureRules(
  listeners: readonly DesiredRuleListener[],
  config: LoadBalancerConfig | 'unknown' | undefined,
): ConfiguredRules {
  if (config === undefined) return { listeners, unused: [] };
  if (config === 'unknown')
    return { listeners: listeners.map((one) => ({ ...one, rules: one.rules.map(asIs) })), unused: [] };
  const configured = listeners.map((listener) => {
    const entry = config.l7Listeners?.find(
      ({ protocol, port }) => protocol === listener.protocol && port === listener.port,
    );
    return entry === undefined ? { listener, unused: [] } : configureListener(listener, entry);
  });
  return {
    listeners: configured.map(({ listener }) => listener),
    unused: configured.flatMap(({ unused }) => unused),
  };
}

function asIs({ settings, ...rule }: DesiredRule): DesiredRule {
  return { ...rule, settings: {}, initialSettings: settings };
}

function configureListener(
  listener: DesiredRuleListener,
  entry: L7Listener,
): { readonly listener: DesiredRuleListener; readonly unused: readonly string[] } {
  const domains = Map.groupBy(entry.domains ?? [], ({ domain }) => domain.toLowerCase());
  const findOf = new Map(
    [...domains].map(([domain, its]) => [domain, indexRuleEntries(its.flatMap(({ rules = [] }) => rules))]),
  );
  const rules = listener.rules.map((rule) => {
    const found = findOf.get(rule.domain)?.(rule.url);
    return found === undefined ? rule : configureRule(rule, found);
  });
  const urlsOf = new Map(
    [...Map.groupBy(listener.rules, ({ domain }) => domain)].map(([domain, its]) => {
      const urls = its.map(({ url }) => url);
      return [domain, new Set([...urls, ...urls.map(pathIdOf)])];
    }),
  );
  const ofDomains = (entry.domains ?? []).flatMap((one) =>
    unusedOfDomain(one, urlsOf.get(one.domain.toLowerCase()) ?? new Set()),
  );
  const isKnown = entry.defaultServer !== undefined && urlsOf.has(entry.defaultServer.toLowerCase());
  const ofListener = [
    ...(entry.defaultServer === undefined || isKnown ? [] : ['defaultServer']),
    ...(entry.keepaliveEnable === 1 ? ['keepaliveEnable'] : []),
    ...(entry.snatEnable === true ? ['snatEnable'] : []),
  ];
  return {
    listener: { ...listener, rules: isKnown ? rules.map((rule) => withDefault(rule, entry.defaultServer)) : rules },
    unused: [...ofListener, ...ofDomains].map((name) => `${name} of ${listener.protocol}:${listener.port}`),
  };
}

function withDefault({ isDefault: _, ...rule }: DesiredRule, defaultServer = ''): DesiredRule {
  return rule.domain === defaultServer.toLowerCase() ? { ...rule, isDefault: true } : rule;
}

/** @param urls those of the Ingress, and `pathIdOf` of each */
function unusedOfDomain({ domain, http2, rules = [] }: Domain, urls: ReadonlySet<string>): readonly string[] {
  const name = domain === '' ? 'the address' : domain;
  if (urls.size === 0) return [`domain ${name}, which the Ingress does not have,`];
  return [
    ...(http2 === undefined ? [] : [`http2 of ${name}`]),
    ...rules.flatMap((entry) => unusedOfRule(entry, urls).map((text) => `${text} of ${name}`)),
  ];
}

function unusedOfRule({ url, healthCheck }: RuleEntry, urls: ReadonlySet<string>): readonly string[] {
  const isServed = urls.has(url) || (!url.startsWith('=') && urls.has(pathIdOf(url)));
  if (!isServed) return [`rule ${url}, which the Ingress does not have,`];
  return healthCheck !== undefined && isTooLong(healthCheck) ? [`healthCheck.timeout of rule ${url}`] : [];
}

/** Another text than any url. */
function pathIdOf(url: string): string {
  return `path ${pathOf(url)}`;
}

function configureRule({ settings: planned, ...rule }: DesiredRule, entry: RuleEntry): DesiredRule {
  const session = sessionSecondsOf(entry.session);
  const healthCheck = entry.healthCheck === undefined ? undefined : checkOf(entry.healthCheck);
  const settings: RuleSettings = {
    ...(entry.scheduler === undefined ? {} : { scheduler: entry.scheduler }),
    ...(session === undefined ? {} : { sessionSeconds: session }),
    ...(healthCheck === undefined ? {} : { healthCheck }),
    ...(entry.forwardType === undefined ? {} : { forwardType: entry.forwardType }),
  };
  const initialSettings = { ...planned, ...settings, ...initialCheck(planned.healthCheck, healthCheck) };
  return { ...rule, settings, initialSettings };
}

/** A new rule is checked as the Ingress asks for where the configuration says nothing. */
function initialCheck(
  planned: HealthCheck | undefined,
  configured: HealthCheck | undefined,
): Pick<RuleSettings, 'healthCheck'> {
  if (configured === undefined || configured.isOn === false)
    return configured === undefined ? {} : { healthCheck: configured };
  return { healthCheck: { ...planned, ...configured, http: { ...planned?.http, ...configured.http } } };
}

/** @returns undefined: it asks for nothing */
function checkOf(config: RuleCheck): HealthCheck | undefined {
  if (config.enable === false) return { isOn: false };
  const http = httpOf(config);
  const check: HealthCheck = {
    ...(config.enable === undefined ? {} : { isOn: true }),
    ...checkTimesOf(config),
    ...(config.sourceIpType === undefined
      ? {}
      : { source: config.sourceIpType === 1 ? 'shared-range' : ('vip' as const) }),
    ...(Object.keys(http).length === 0 ? {} : { kind: 'HTTP', http }),
  };
  return Object.keys(check).length === 0 ? undefined : check;
}

function httpOf(config: RuleCheck): NonNullable<HealthCheck['http']> {
  const { httpCheckPath, httpCheckDomain, httpCheckMethod, httpCode } = config;
  return {
    ...(httpCheckPath === undefined ? {} : { path: httpCheckPath }),
    ...(httpCheckDomain === undefined ? {} : { domain: httpCheckDomain }),
    ...(httpCheckMethod === undefined ? {} : { method: httpCheckMethod }),
    ...(httpCode === undefined ? {} : { codes: httpCode }),
  };
}
