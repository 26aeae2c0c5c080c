import { classifyError } from '../classify-error.ts';
import { RULES_PER_CHANGE, type RulePort, type RuleSettings, type RuleSpec } from '../rules.ts';
import type { Caller } from './caller.ts';
import { certificateRequest } from './certificate-request.ts';
import { checkRequest } from './check-request.ts';
import { decodeAccepted } from './decode/load-balancer.ts';
import { decodeCreatedRules } from './decode/rule.ts';
import { requireCount } from './require-count.ts';

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
      return decodeAccepted(await call(action, { ...names, ...settingsRequest(changes) }, context), action);
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
    ...settingsRequest(settings),
    ...(certificate === undefined ? {} : certificateRequest(certificate)),
    ...(isDefault === undefined ? {} : { DefaultServer: isDefault }),
  };
}

function settingsRequest({ scheduler, sessionSeconds, healthCheck, forwardType }: RuleSettings) {
  return {
    ...(scheduler === undefined ? {} : { Scheduler: scheduler }),
    ...(sessionSeconds === undefined ? {} : { SessionExpireTime: sessionSeconds }),
    ...(healthCheck === undefined ? {} : { HealthCheck: checkRequest(healthCheck) }),
    ...(forwardType === undefined ? {} : { ForwardType: forwardType }),
  };
}
