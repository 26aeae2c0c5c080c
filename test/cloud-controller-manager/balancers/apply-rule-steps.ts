import type { Listener } from '../../../cloud/listeners.ts';
import type { Rewrite } from '../../../cloud/rewrites.ts';
import type { Rule } from '../../../cloud/rules.ts';
import type { RuleStep } from '../../../cloud-controller-manager/balancers/load-balancer-step.ts';
import type { ObservedLoadBalancer } from '../../../cloud-controller-manager/balancers/observed-load-balancer.ts';
import { placesOf, type RuleKey, ruleListenerKeyOf } from '../../../cloud-controller-manager/balancers/target-place.ts';

const MOST_RULES = 50;
let serial = 0;

/** Does what the cloud does for a step of layer 7, as the documents of its API say. */
export function applyRuleStep(
  observed: ObservedLoadBalancer,
  step: RuleStep,
  listenerName: string,
): ObservedLoadBalancer {
  const { listeners, rewrites = [], targets } = observed;
  const ownListener = (matches: (one: Listener) => boolean): Listener => {
    const found = listeners.find((one) => one.name === listenerName && matches(one));
    if (found === undefined) throw new Error(`${step.kind}: a listener of others, or none`);
    return found;
  };
  const withRules = (listener: Listener, rules: readonly Rule[]): readonly Listener[] =>
    listeners.map((one) => (one === listener ? { ...one, rules } : one));
  const idOf = (key: RuleKey): readonly [string, string] => {
    const [id = ''] = [...placesOf(listeners, listenerName)].find(([, place]) => place === key) ?? [];
    const [listenerId = '', ruleId = ''] = id.split(' ');
    if (ruleId === '') throw new Error(`no rule ${key}`);
    return [listenerId, ruleId];
  };
  switch (step.kind) {
    case 'createRules': {
      const listener = ownListener((one) => ruleListenerKeyOf(one) === step.listener);
      let rules = listener.rules ?? [];
      for (const { settings, certificate, isDefault, ...named } of step.rules) {
        if (rules.some(({ domain, url }) => domain === named.domain && url === named.url)) throw new Error('Duplicate');
        const sibling = rules.find(({ domain }) => domain === named.domain);
        const its = certificate ?? sibling?.certificate;
        if (listener.isSni === true && its === undefined) throw new Error(`no certificate of ${named.domain}`);
        const becomesDefault = rules.length === 0 || isDefault === true;
        serial += 1;
        const rule: Rule = {
          ...{ ...settings, ...named, ruleId: `loc-${serial}`, createdAtMs: 0 },
          isDefault: becomesDefault || sibling?.isDefault === true,
          ...(its === undefined ? {} : { certificate: its }),
        };
        rules = [...rules, rule].map((one) =>
          becomesDefault ? { ...one, isDefault: one.domain === named.domain } : one,
        );
      }
      if (step.rules.length > MOST_RULES || rules.length > MOST_RULES) throw new Error('LimitExceeded');
      return { ...observed, listeners: withRules(listener, rules) };
    }
    case 'modifyRule': {
      const listener = ownListener(({ listenerId }) => listenerId === step.rule.listenerId);
      const rules = (listener.rules ?? []).map((one) =>
        one.ruleId === step.rule.ruleId
          ? { ...one, ...step.changes, healthCheck: { ...one.healthCheck, ...step.changes.healthCheck } }
          : one,
      );
      return { ...observed, listeners: withRules(listener, rules) };
    }
    case 'modifyDomain': {
      const listener = ownListener((one) => ruleListenerKeyOf(one) === step.listener);
      const { certificate, isDefault } = step.changes;
      if (!listener.rules?.some(({ domain }) => domain === step.domain)) throw new Error(`no domain ${step.domain}`);
      const rules = listener.rules.map((one) => ({
        ...one,
        ...(certificate !== undefined && one.domain === step.domain ? { certificate } : {}),
        ...(isDefault === true ? { isDefault: one.domain === step.domain } : {}),
      }));
      return { ...observed, listeners: withRules(listener, rules) };
    }
    case 'createRewrites': {
      const made = step.rewrites.map(({ source, target, code, takesUrl }): Rewrite => {
        const [sourceListenerId, sourceRuleId] = idOf(source);
        const [targetListenerId, targetRuleId] = idOf(target);
        return {
          ...{ sourceListenerId, sourceRuleId, targetListenerId, targetRuleId, code, takesUrl },
          isAutomatic: false,
        };
      });
      const all = [...rewrites, ...made];
      const sources = all.map(({ sourceRuleId }) => sourceRuleId);
      if (new Set(sources).size < sources.length) throw new Error('RewriteAlreadyExist');
      if (all.some(({ targetRuleId }) => sources.includes(targetRuleId))) throw new Error('a chain of redirects');
      return withRewrites(observed, all);
    }
    case 'deleteRewrites': {
      const doomed = new Set(step.rewrites.map(({ sourceRuleId }) => sourceRuleId));
      if (![...doomed].every((id) => rewrites.some(({ sourceRuleId }) => sourceRuleId === id)))
        throw new Error('SomeRewriteNotFound');
      return withRewrites(
        observed,
        rewrites.filter(({ sourceRuleId }) => !doomed.has(sourceRuleId)),
      );
    }
    case 'deleteRules': {
      const listener = ownListener(({ listenerId }) => listenerId === step.listenerId);
      const doomed = new Set(step.ruleIds);
      if (rewrites.some((one) => doomed.has(one.targetRuleId) && !doomed.has(one.sourceRuleId)))
        throw new Error('a redirect leads to a rule that is deleted');
      const left = (listener.rules ?? []).filter(({ ruleId }) => !doomed.has(ruleId));
      const next = step.newDefaultDomain ?? listener.rules?.find(({ isDefault }) => isDefault)?.domain;
      if (left.length > 0 && !left.some(({ domain }) => domain === next)) throw new Error('no default domain is left');
      const rules = left.map((one) => ({ ...one, isDefault: one.domain === next }));
      return withRewrites(
        {
          ...observed,
          listeners: withRules(listener, rules),
          targets: targets.filter(({ ruleId = '' }) => !doomed.has(ruleId)),
        },
        rewrites.filter(({ sourceRuleId }) => !doomed.has(sourceRuleId)),
      );
    }
  }
}

function withRewrites(observed: ObservedLoadBalancer, rewrites: readonly Rewrite[]): ObservedLoadBalancer {
  const targetOf = new Map(
    rewrites.map(({ sourceRuleId, targetListenerId, targetRuleId }) => [
      sourceRuleId,
      { listenerId: targetListenerId, ruleId: targetRuleId },
    ]),
  );
  const listeners = observed.listeners.map((listener) => {
    if (listener.rules === undefined) return listener;
    const rules = listener.rules.map(({ rewriteTo: _, ...rule }): Rule => {
      const rewriteTo = targetOf.get(rule.ruleId);
      return rewriteTo === undefined ? rule : { ...rule, rewriteTo };
    });
    return { ...listener, rules };
  });
  return { ...observed, listeners, rewrites };
}
