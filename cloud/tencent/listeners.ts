import type { ListenerCertificate } from '../certificates.ts';
import { classifyError } from '../classify-error.ts';
import type { HealthCheck } from '../health-check.ts';
import { LISTENERS_PER_DELETION, type ListenerPort, type ListenerSettings, PORTS_PER_CREATION } from '../listeners.ts';
import { REWRITES_PER_CHANGE, type RewritePort } from '../rewrites.ts';
import { RULES_PER_CHANGE, type RulePort, type RuleSettings, type RuleSpec } from '../rules.ts';
import type { Caller } from './caller.ts';
import { decodeCreatedListeners, decodeListeners } from './decode/listener.ts';
import { decodeAccepted } from './decode/load-balancer.ts';
import { decodeCreatedRules, decodeRewrites } from './decode/rule.ts';
import { requireCount } from './require-count.ts';

/** Creates the listener part of the port. */
export function createListenerPort(call: Caller): ListenerPort {
  return {
    list: async (loadBalancerId, context) =>
      decodeListeners(await call('DescribeListeners', { LoadBalancerId: loadBalancerId }, context)),
    create: async (loadBalancerId, { protocol, ports, settings }, context) => {
      const action = 'CreateListener';
      requireCount(action, 'ports', ports.length, PORTS_PER_CREATION);
      const request = {
        LoadBalancerId: loadBalancerId,
        Protocol: protocol,
        Ports: ports.map(({ port }) => port),
        ListenerNames: ports.map(({ name }) => name),
        ...settingsRequest(settings),
      };
      const answer = await call(action, request, context);
      return { listenerIds: decodeCreatedListeners(answer, ports.length), task: decodeAccepted(answer, action) };
    },
    modify: async (loadBalancerId, listenerId, { name, ...settings }, context) => {
      const action = 'ModifyListener';
      const request = {
        LoadBalancerId: loadBalancerId,
        ListenerId: listenerId,
        ...(name === undefined ? {} : { ListenerName: name }),
        ...settingsRequest(settings),
      };
      return decodeAccepted(await call(action, request, context), action);
    },
    delete: async (loadBalancerId, listenerIds, context) => {
      const action = 'DeleteLoadBalancerListeners';
      // An empty id would be none.
      const named = listenerIds.every((id) => id !== '') ? listenerIds.length : 0;
      requireCount(action, 'listeners', named, LISTENERS_PER_DELETION);
      const request = { LoadBalancerId: loadBalancerId, ListenerIds: [...listenerIds] };
      return decodeAccepted(await call(action, request, context), action);
    },
  };
}

function settingsRequest(settings: ListenerSettings) {
  const { scheduler, sessionSeconds, idleSeconds, resetsOnDeregister, healthCheck } = settings;
  const { certificate, isSni } = settings;
  return {
    ...(scheduler === undefined ? {} : { Scheduler: scheduler }),
    ...(sessionSeconds === undefined ? {} : { SessionExpireTime: sessionSeconds }),
    ...(idleSeconds === undefined ? {} : { IdleConnectTimeout: idleSeconds }),
    ...(resetsOnDeregister === undefined ? {} : { DeregisterTargetRst: resetsOnDeregister }),
    ...(healthCheck === undefined ? {} : { HealthCheck: checkRequest(healthCheck) }),
    ...(certificate === undefined ? {} : certificateRequest(certificate)),
    ...(isSni === undefined ? {} : { SniSwitch: isSni ? 1 : 0 }),
  };
}

/** Creates the rule part of the port. */
export function createRulePort(call: Caller): RulePort {
  return {
    create: async (loadBalancerId, listenerId, specs, context) => {
      const action = 'CreateRule';
      requireCount(action, 'rules', specs.length, RULES_PER_CHANGE);
      const request = { LoadBalancerId: loadBalancerId, ListenerId: listenerId, Rules: specs.map(ruleRequest) };
      const answer = await call(action, request, context);
      return { ruleIds: decodeCreatedRules(answer, specs.length), task: decodeAccepted(answer, action) };
    },
    modify: async (loadBalancerId, listenerId, ruleId, changes, context) => {
      const action = 'ModifyRule';
      const names = { LoadBalancerId: loadBalancerId, ListenerId: listenerId, LocationId: ruleId };
      return decodeAccepted(await call(action, { ...names, ...ruleSettingsRequest(changes) }, context), action);
    },
    modifyDomain: async (loadBalancerId, listenerId, domain, { certificate, isDefault }, context) => {
      const action = 'ModifyDomainAttributes';
      if (domain === '') {
        throw classifyError({ code: 'BAD_REQUEST', action, text: 'no domain; name one. Nothing was sent' });
      }
      const request = {
        LoadBalancerId: loadBalancerId,
        ListenerId: listenerId,
        Domain: domain,
        ...(certificate === undefined ? {} : certificateRequest(certificate)),
        ...(isDefault === undefined ? {} : { DefaultServer: isDefault }),
      };
      return decodeAccepted(await call(action, request, context), action);
    },
    delete: async (loadBalancerId, listenerId, ruleIds, context, newDefaultDomain) => {
      const action = 'DeleteRule';
      // Without ids the API deletes by domain and path; an empty id would be none.
      const named = ruleIds.every((id) => id !== '') ? ruleIds.length : 0;
      requireCount(action, 'rules', named, RULES_PER_CHANGE);
      const request = {
        LoadBalancerId: loadBalancerId,
        ListenerId: listenerId,
        LocationIds: [...ruleIds],
        ...(newDefaultDomain === undefined ? {} : { NewDefaultServerDomain: newDefaultDomain }),
      };
      return decodeAccepted(await call(action, request, context), action);
    },
  };
}

function ruleRequest({ domain, url, settings, certificate, isDefault }: RuleSpec) {
  return {
    // A rule without a domain is one of the address.
    ...(domain === '' ? {} : { Domain: domain }),
    Url: url,
    ...ruleSettingsRequest(settings),
    ...(certificate === undefined ? {} : certificateRequest(certificate)),
    ...(isDefault === undefined ? {} : { DefaultServer: isDefault }),
  };
}

function ruleSettingsRequest({ scheduler, sessionSeconds, healthCheck, forwardType }: RuleSettings) {
  return {
    ...(scheduler === undefined ? {} : { Scheduler: scheduler }),
    ...(sessionSeconds === undefined ? {} : { SessionExpireTime: sessionSeconds }),
    ...(healthCheck === undefined ? {} : { HealthCheck: checkRequest(healthCheck) }),
    ...(forwardType === undefined ? {} : { ForwardType: forwardType }),
  };
}

/** Creates the redirect part of the port. */
export function createRewritePort(call: Caller): RewritePort {
  return {
    list: async (loadBalancerId, context) =>
      decodeRewrites(await call('DescribeRewrite', { LoadBalancerId: loadBalancerId }, context)),
    create: async (loadBalancerId, { sourceListenerId, targetListenerId, rewrites }, context) => {
      const action = 'ManualRewrite';
      requireCount(action, 'redirects', rewrites.length, REWRITES_PER_CHANGE);
      const request = {
        LoadBalancerId: loadBalancerId,
        SourceListenerId: sourceListenerId,
        TargetListenerId: targetListenerId,
        RewriteInfos: rewrites.map((one) => ({
          SourceLocationId: one.sourceRuleId,
          TargetLocationId: one.targetRuleId,
          RewriteCode: one.code,
          TakeUrl: one.takesUrl,
          SourceDomain: one.sourceDomain,
        })),
      };
      return decodeAccepted(await call(action, request, context), action);
    },
    delete: async (loadBalancerId, rewrites, context) => {
      const action = 'DeleteRewrite';
      requireCount(action, 'redirects', rewrites.length, REWRITES_PER_CHANGE);
      const pairs = new Map(rewrites.map((one) => [`${one.sourceListenerId}/${one.targetListenerId}`, one]));
      const [pair, ...others] = pairs.values();
      if (pair === undefined || others.length > 0) {
        const text = `redirects between ${pairs.size} pairs of listeners; make a call for each. Nothing was sent`;
        throw classifyError({ code: 'BAD_REQUEST', action, text });
      }
      const request = {
        LoadBalancerId: loadBalancerId,
        SourceListenerId: pair.sourceListenerId,
        TargetListenerId: pair.targetListenerId,
        RewriteInfos: rewrites.map(({ sourceRuleId, targetRuleId }) => ({
          SourceLocationId: sourceRuleId,
          TargetLocationId: targetRuleId,
        })),
      };
      return decodeAccepted(await call(action, request, context), action);
    },
  };
}

/** The value of CheckPort for the port of the target. */
const PORT_OF_TARGET = -1;

/** Converts a health check of a listener or rule to the API's fields; what is absent is left out. */
function checkRequest(check: HealthCheck) {
  const { isOn, kind, intervalSeconds, timeoutSeconds, checkPort, source, exchange } = check;
  const { healthyThreshold, unhealthyThreshold } = check;
  return {
    ...(isOn === undefined ? {} : { HealthSwitch: isOn ? 1 : 0 }),
    ...(kind === undefined ? {} : { CheckType: kind }),
    ...(intervalSeconds === undefined ? {} : { IntervalTime: intervalSeconds }),
    ...(timeoutSeconds === undefined ? {} : { TimeOut: timeoutSeconds }),
    ...(healthyThreshold === undefined ? {} : { HealthNum: healthyThreshold }),
    ...(unhealthyThreshold === undefined ? {} : { UnHealthNum: unhealthyThreshold }),
    ...(checkPort === undefined ? {} : { CheckPort: checkPort === 'target' ? PORT_OF_TARGET : checkPort }),
    ...(source === undefined ? {} : { SourceIpType: source === 'vip' ? 0 : 1 }),
    ...httpRequest(check.http),
    ...(exchange === undefined
      ? {}
      : { ContextType: exchange.format, SendContext: exchange.send, RecvContext: exchange.receive }),
  };
}

function httpRequest({ path, domain, method, version, codes }: NonNullable<HealthCheck['http']> = {}) {
  return {
    ...(path === undefined ? {} : { HttpCheckPath: path }),
    ...(domain === undefined ? {} : { HttpCheckDomain: domain }),
    ...(method === undefined ? {} : { HttpCheckMethod: method }),
    ...(version === undefined ? {} : { HttpVersion: version }),
    ...(codes === undefined ? {} : { HttpCode: codes }),
  };
}

const MODES = { server: 'UNIDIRECTIONAL', both: 'MUTUAL' } as const;

/** Converts the certificates of a listener or domain to the API's fields: one has a field other than several. */
function certificateRequest({ certIds, caCertId }: ListenerCertificate) {
  const SSLMode = caCertId === undefined ? MODES.server : MODES.both;
  const [CertId, ...others] = certIds;
  if (CertId !== undefined && others.length === 0) {
    return { Certificate: { SSLMode, CertId, ...(caCertId === undefined ? {} : { CertCaId: caCertId }) } };
  }
  // The list has the authority's certificate too.
  const all = [...certIds, ...(caCertId === undefined ? [] : [caCertId])];
  return { MultiCertInfo: { SSLMode, CertList: all.map((id) => ({ CertId: id })) } };
}
