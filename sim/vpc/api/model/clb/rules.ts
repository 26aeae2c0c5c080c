import type { CreateRuleResponse } from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import { ApiError } from '../api-error.ts';
import type { ModelCall } from '../call.ts';
import { layer7Of, readCertificates, ruleOf, withRule } from './layer7.ts';
import { listenerOf, withListener } from './listeners.ts';
import { requireQuota } from './quotas.ts';
import { readDomain, readRuleSettings, readUrl } from './read-rule.ts';
import { redirectsTo, withoutRedirects } from './redirects.ts';
import { changeLater } from './tasks.ts';
import type { ModelCertificates, ModelLayer7, ModelListener, ModelLoadBalancer } from './types.ts';

const MOST_RULES = 50;
const RULE_FIELDS = [
  ...['Domain', 'SessionExpireTime', 'HealthCheck', 'Certificate', 'MultiCertInfo', 'Scheduler', 'ForwardType'],
  'DefaultServer',
];

/** Answers CreateRule: all of them, or none. The first domain of a listener is its default one. */
export function createRules(call: ModelCall): Partial<CreateRuleResponse> {
  const { state, params } = call;
  const { balancer, listener, layer7 } = subjectOf(call);
  const inputs = params.parts('Rules', MOST_RULES, ['Url'], RULE_FIELDS);
  if (inputs.length === 0) throw new ApiError('InvalidParameterValue.Length', 'Rules is empty.');
  const domains = new Map(layer7.domains);
  let { defaultDomain } = layer7;
  const rules = new Map(layer7.rules);
  for (const input of inputs) {
    const domain = readDomain(input, 'Domain', balancer.vip);
    const url = readUrl(input);
    if ([...rules.values()].some((rule) => rule.domain === domain && rule.url === url)) {
      throw new ApiError('InvalidParameterValue.Duplicate', `${listener.listenerId} has a rule of ${domain}${url}.`);
    }
    const settings = readRuleSettings(input);
    const certificates = readCertificates(state, input);
    if (certificates !== undefined) requireSni(listener, layer7);
    const own = certificates ?? domains.get(domain);
    if (layer7.isSni && own === undefined) {
      throw new ApiError(
        'MissingParameter',
        `${listener.listenerId} has SNI: the domain ${domain} needs a certificate.`,
      );
    }
    if (own !== undefined) domains.set(domain, own);
    if (defaultDomain === undefined || input.flag('DefaultServer') === true) defaultDomain = domain;
    const ruleId = state.nextId('loc');
    rules.set(ruleId, { ...settings, ruleId, domain, url, createdAtMs: state.nowMs, targets: new Map() });
  }
  requireQuota(rules.size, state.clb.limits.rules, `rules of ${listener.listenerId}`);
  const after = { ...layer7, rules, domains, ...(defaultDomain === undefined ? {} : { defaultDomain }) };
  changeLater(call, balancer, (before) => withLayer7(before, listener.listenerId, after));
  return { LocationIds: [...rules.keys()].slice(layer7.rules.size) };
}

/** Answers ModifyRule. */
export function modifyRule(call: ModelCall): object {
  const { params } = call;
  const { balancer, listener } = subjectOf(call);
  const rule = ruleOf(listener, params.text('LocationId'));
  const settings = readRuleSettings(params, rule);
  changeLater(call, balancer, (before) =>
    withRule(before, listener.listenerId, rule.ruleId, (now) => ({ ...now, ...settings })),
  );
  return {};
}

/** Answers ModifyDomainAttributes: certificates, and which domain is the default one. */
export function modifyDomain(call: ModelCall): object {
  const { state, params } = call;
  const { balancer, listener, layer7 } = subjectOf(call);
  const domain = readDomain(params, 'Domain', balancer.vip);
  requireDomain(listener, layer7, domain);
  const certificates = readCertificates(state, params);
  if (certificates !== undefined) requireSni(listener, layer7);
  const isDefault = params.flag('DefaultServer');
  if (isDefault === false) throw new ApiError('InvalidParameterValue', 'Make another domain the default one.');
  const domains = new Map<string, ModelCertificates>(layer7.domains);
  if (certificates !== undefined) domains.set(domain, certificates);
  const after = { ...layer7, domains, ...(isDefault === true ? { defaultDomain: domain } : {}) };
  changeLater(call, balancer, (before) => withLayer7(before, listener.listenerId, after));
  return {};
}

/** Answers DeleteRule by ids, with their targets and redirects: all of them, or none. */
export function deleteRules(call: ModelCall): object {
  const { params } = call;
  const { balancer, listener, layer7 } = subjectOf(call);
  const ids = new Set(params.texts('LocationIds', MOST_RULES));
  if (ids.size === 0) throw new ApiError('UnsupportedOperation', 'DeleteRule without LocationIds is not simulated.');
  for (const id of ids) ruleOf(listener, id);
  const source = redirectsTo(balancer, ids).find((rule) => !ids.has(rule.ruleId));
  if (source !== undefined) {
    throw new ApiError('FailedOperation', `The rule ${source.ruleId} is redirected to one of these.`);
  }
  const rules = new Map([...layer7.rules].filter(([id]) => !ids.has(id)));
  const left = new Set([...rules.values()].map(({ domain }) => domain));
  const wanted = params.has('NewDefaultServerDomain')
    ? readDomain(params, 'NewDefaultServerDomain', balancer.vip)
    : layer7.defaultDomain;
  if (left.size > 0 && (wanted === undefined || !left.has(wanted))) {
    throw new ApiError('InvalidParameterValue', `${wanted} cannot be the default domain: no rule would have it.`);
  }
  const { defaultDomain: _, ...others } = layer7;
  const after = {
    ...others,
    rules,
    domains: new Map([...layer7.domains].filter(([domain]) => left.has(domain))),
    ...(left.size === 0 || wanted === undefined ? {} : { defaultDomain: wanted }),
  };
  changeLater(call, balancer, (before) => withoutRedirects(withLayer7(before, listener.listenerId, after), ids));
  return {};
}

function subjectOf({ state, params }: ModelCall): {
  readonly balancer: ModelLoadBalancer;
  readonly listener: ModelListener;
  readonly layer7: ModelLayer7;
} {
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const listener = listenerOf(balancer, params.text('ListenerId'));
  return { balancer, listener, layer7: layer7Of(listener) };
}

function withLayer7(balancer: ModelLoadBalancer, listenerId: string, layer7: ModelLayer7): ModelLoadBalancer {
  const listener = balancer.listeners.get(listenerId);
  return listener === undefined ? balancer : withListener(balancer, { ...listener, layer7 });
}

function requireSni({ listenerId }: ModelListener, { isSni }: ModelLayer7): void {
  if (!isSni)
    throw new ApiError('InvalidParameterValue', `${listenerId} has no SNI: its domains have no certificates.`);
}

function requireDomain({ listenerId }: ModelListener, { rules }: ModelLayer7, domain: string): void {
  if ([...rules.values()].some((rule) => rule.domain === domain)) return;
  throw new ApiError('InvalidParameter.LocationNotFound', `${listenerId} has no rule of the domain ${domain}.`);
}
