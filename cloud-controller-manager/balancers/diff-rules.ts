import type { ListenerCertificate } from '../../cloud/certificates.ts';
import type { Listener } from '../../cloud/listeners.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import { RULES_PER_CHANGE, type Rule, type RuleSettings, type RuleSpec } from '../../cloud/rules.ts';
import type { Target } from '../../cloud/targets.ts';
import { changesOf } from './compare-settings.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { DesiredCertificate, DesiredRule, DesiredRuleListener } from './desired-rules.ts';
import {
  coversPort,
  divideByClash,
  divideSurplus,
  type ListenerDiff,
  listenerCreations,
  listenerDeletions,
} from './diff-listeners.ts';
import { diffTargets } from './diff-targets.ts';
import { keepPlainRules, lacksCertificate } from './keep-plain-rules.ts';
import type { LoadBalancerStep, PlainStep } from './load-balancer-step.ts';
import { type Notice, remark } from './notice.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';
import { isSameRedirect, planRewrites, type RedirectedRule, rewriteDeletions } from './plan-rewrites.ts';
import { placeIdOf, type RuleKey, type RuleListenerKey, ruleKeyOf, ruleListenerKeyOf } from './target-place.ts';
import { batches, type KnownOfTargets, orderTargetSteps, targetFactsOf } from './target-steps.ts';

type WantedRules = Pick<DesiredLoadBalancer, 'listenerName' | 'maxRules' | 'onlyLeaving' | 'keepsNames'> & {
  readonly ruleListeners: readonly DesiredRuleListener[];
};

type Contents = Pick<ObservedLoadBalancer, 'listeners' | 'isOwn' | 'targets' | 'rewrites'> & {
  readonly balancer: Pick<LoadBalancer, 'loadBalancerId'>;
};

/** A rule as it is wanted, as it is, or both. */
type RulePair = {
  readonly key: RuleKey;
  readonly listener: RuleListenerKey;
  readonly domain: string;
  readonly url: string;
  readonly wanted?: DesiredRule;
  readonly present?: Rule & { readonly listenerId: string };
  /** The targets that it has. */
  readonly targets: readonly Target[];
  /** Whether it is neither made nor changed, for want of a certificate or of the rule that it leads to. */
  readonly isFrozen: boolean;
  /** Whether it stays though it is not asked for. */
  readonly isKept: boolean;
};

type UnjudgedPair = Omit<RulePair, 'isFrozen' | 'isKept'>;

/** A listener as it is wanted, and as it is. */
type ListenerPair = { readonly wanted: DesiredRuleListener; readonly present?: Listener };

/**
 * Compares listeners of layer 7 and their rules with the desired ones. Rules are made, their targets registered, and
 * redirects moved when these serve; what goes is deleted last. Every listener of HTTPS has SNI: the certificate of the
 * default domain is shown to clients that name none.
 */
export function diffRules(
  desired: WantedRules,
  observed: Contents,
  known: KnownOfTargets,
): ListenerDiff & { readonly awaited?: readonly Target[] } {
  const { listenerName, maxRules = Number.POSITIVE_INFINITY } = desired;
  const ours = observed.listeners.filter(({ name }) => name === listenerName);
  const ruleListeners = withKeptListeners(desired, ours);
  const { free, notices } = divideByClash(keepPlainRules(ruleListeners, ours), observed, listenerName, 'Ingress');
  const byKey = new Map(ours.map((one) => [ruleListenerKeyOf(one), one]));
  const listeners = free.map((wanted): ListenerPair => {
    const present = byKey.get(keyOf(wanted));
    return { wanted, ...(present === undefined ? {} : { present }) };
  });
  const { deletable: leaving, left } = divideSurplus(
    ours.filter((one) => listeners.every(({ present }) => present !== one)),
    desired,
    observed,
    known,
  );
  // Another protocol is to have the port.
  const inTheWay = leaving.filter((one) => free.some((wanted) => coversPort(one, wanted)));
  const pairs = pairRules(listeners, observed.targets, ours, desired.onlyLeaving);
  const diffs = diffPairs(pairs, observed, known);
  const redirects = planRedirectsOf(pairs, observed, known);
  const surplus = pairs.filter((one) => one.wanted === undefined && !one.isKept && !redirects.kept.has(one.key));
  const { early, doomed, late, blocked, awaited: ofRules } = planDeletions(surplus, pairs, observed, known, maxRules);
  const targets = orderTargetSteps([...diffs, ...left]);
  const steps: readonly LoadBalancerStep[] = [
    ...rewriteDeletions(redirectsOf(inTheWay, observed)),
    ...listenerDeletions(inTheWay.map(({ listenerId }) => listenerId)),
    ...targets.before,
    ...early,
    ...listeners.flatMap(sniSteps),
    ...listenerCreations(
      listeners.flatMap(({ wanted, present }) =>
        // A listener without a rule would be of no use.
        present === undefined && pairs.some((one) => one.listener === keyOf(wanted) && !one.isFrozen)
          ? [newListener(wanted)]
          : [],
      ),
      listenerName,
    ),
    ...changeSteps(pairs, doomed),
    ...targets.after,
    ...redirects.deletions,
    ...redirects.creations,
    ...late,
    ...leavingSteps(leaving, inTheWay, observed),
  ];
  const rules = new Set([...redirects.awaited, ...ofRules]);
  const awaited = pairs.flatMap(({ key, targets: its }) =>
    rules.has(key) ? its.filter(({ weight }) => weight > 0) : [],
  );
  return {
    steps,
    notices: [...notices, ...blocked],
    held: diffs.flatMap(({ held }) => held),
    ...(awaited.length === 0 ? {} : { awaited }),
  };
}

/**
 * Leaves out passive rules that are not there, and adds the listeners that have a rule which stays though it is not asked for;
 * they keep their port.
 */
function withKeptListeners(
  { ruleListeners: asked, onlyLeaving }: WantedRules,
  ours: readonly Listener[],
): readonly DesiredRuleListener[] {
  if (onlyLeaving === undefined) return asked;
  const present = new Set(
    ours.flatMap((one) => {
      const key = ruleListenerKeyOf(one);
      return key === undefined ? [] : (one.rules ?? []).map((rule) => ruleKeyOf(key, rule));
    }),
  );
  const ruleListeners = asked.flatMap((listener): readonly DesiredRuleListener[] => {
    const rules = listener.rules.filter(
      (rule) => rule.isPassive !== true || present.has(ruleKeyOf(keyOf(listener), rule)),
    );
    return rules.length === 0 ? [] : [{ ...listener, rules }];
  });
  const kept = ours.flatMap(({ protocol, port, rules = [] }): readonly DesiredRuleListener[] => {
    if (protocol !== 'HTTP' && protocol !== 'HTTPS') return [];
    const isKept = rules.some((rule) => !onlyLeaving.includes(ruleKeyOf(`${protocol}/${port}`, rule)));
    return isKept ? [{ protocol, port, rules: [] }] : [];
  });
  const unasked = kept.filter(({ protocol, port }) =>
    ruleListeners.every((one) => one.protocol !== protocol || one.port !== port),
  );
  const free = ruleListeners.filter(({ port }) => unasked.every((one) => one.port !== port));
  return [...free, ...unasked];
}

function pairRules(
  listeners: readonly ListenerPair[],
  targets: readonly Target[],
  ours: readonly Listener[],
  onlyLeaving: DesiredLoadBalancer['onlyLeaving'],
): readonly RulePair[] {
  const targetsOf = Map.groupBy(targets, placeIdOf);
  const pairs = listeners.flatMap(({ wanted: listener, present }): readonly UnjudgedPair[] => {
    const key = keyOf(listener);
    const its = new Map((present?.rules ?? []).map((rule) => [ruleKeyOf(key, rule), rule]));
    const keys = new Set([...listener.rules.map((rule) => ruleKeyOf(key, rule)), ...its.keys()]);
    const wantedByKey = new Map(listener.rules.map((rule) => [ruleKeyOf(key, rule), rule]));
    return [...keys].flatMap((one) => {
      const [wanted, rule] = [wantedByKey.get(one), its.get(one)];
      const named = wanted ?? rule;
      if (named === undefined) return [];
      const listenerId = present?.listenerId ?? '';
      return {
        ...{ key: one, listener: key, domain: named.domain, url: named.url },
        ...(wanted === undefined ? {} : { wanted }),
        ...(rule === undefined ? {} : { present: { ...rule, listenerId } }),
        targets: rule === undefined ? [] : (targetsOf.get(placeIdOf({ listenerId, ruleId: rule.ruleId })) ?? []),
      };
    });
  });
  const lacks = ({ listener, wanted }: UnjudgedPair): boolean =>
    wanted !== undefined && lacksCertificate(listener, wanted, ours);
  const made = new Set(pairs.flatMap((one) => (one.wanted !== undefined && !lacks(one) ? [one.key] : [])));
  const leadsNowhere = ({ wanted }: UnjudgedPair): boolean =>
    wanted?.redirect !== undefined && !made.has(redirectKeyOf(wanted.redirect));
  return pairs.map((one) => ({
    ...one,
    isFrozen: lacks(one) || leadsNowhere(one),
    isKept: one.wanted === undefined && onlyLeaving !== undefined && !onlyLeaving.includes(one.key),
  }));
}

function diffPairs(pairs: readonly RulePair[], observed: Contents, known: KnownOfTargets) {
  const { keyOfRule, rewriteOf } = rewritesBy(pairs, observed);
  return pairs.flatMap(({ key, wanted, present, targets, isFrozen, url }) => {
    if (wanted === undefined || isFrozen) return [];
    const { redirect } = wanted;
    if (redirect === undefined) return [diffTargets(key, targetFactsOf(wanted, targets, known))];
    const isInForce = isSameRedirect(redirect, rewriteOf(present), keyOfRule, url);
    return isInForce ? [diffTargets(key, { desired: [], observed: targets, isDrained: () => true })] : [];
  });
}

function planRedirectsOf(pairs: readonly RulePair[], observed: Contents, known: KnownOfTargets) {
  const { keyOfRule, rewriteOf } = rewritesBy(pairs, observed);
  const byKey = new Map(pairs.map((one) => [one.key, one]));
  const rules = pairs.flatMap((pair): readonly RedirectedRule[] => {
    const { key, listener, domain, url, wanted, targets, isFrozen, isKept } = pair;
    if (isFrozen || isKept || wanted?.keepsRedirect === true) return [];
    const present = rewriteOf(pair.present);
    const isLive = present !== undefined || targets.some(({ weight }) => weight > 0);
    return [
      {
        ...{ key, listener, domain, url, isLive, isSurplus: wanted === undefined },
        ...(wanted?.redirect === undefined ? {} : { wanted: wanted.redirect }),
        ...(present === undefined ? {} : { present }),
      },
    ];
  });
  return planRewrites({ rules, keyOf: keyOfRule, isProven: (key) => isProven(byKey.get(key), known) });
}

/** Plans the deletion of rules. Those that would keep new ones over the quota go first; others wait until new ones serve. */
function planDeletions(
  surplus: readonly RulePair[],
  pairs: readonly RulePair[],
  observed: Contents,
  known: KnownOfTargets,
  maxRules: number,
) {
  const ids = new Set(pairs.flatMap(({ present, isKept }) => (isKept ? [] : (present?.ruleId ?? []))));
  const foreign = (observed.rewrites ?? []).filter(({ sourceRuleId }) => !ids.has(sourceRuleId));
  const isBlocked = ({ present }: RulePair): boolean =>
    foreign.some(({ targetRuleId }) => targetRuleId === present?.ruleId);
  const free = surplus.filter((one) => !isBlocked(one));
  const involved = new Set((observed.rewrites ?? []).flatMap((one) => [one.sourceRuleId, one.targetRuleId]));
  const early = [...Map.groupBy(pairs, ({ listener }) => listener).values()].flatMap((its) => {
    const count = its.filter(({ present, isFrozen }) => present !== undefined || !isFrozen).length;
    const simple = its.filter((one) => free.includes(one) && !involved.has(one.present?.ruleId ?? ''));
    return simple.slice(0, Math.max(0, count - maxRules));
  });
  const unproven = pairs.filter((one) => isAsked(one) && !isProven(one, known));
  const waits = ({ listener, domain, targets }: RulePair): boolean =>
    known.hasWaited !== true &&
    targets.some(({ weight }) => weight > 0) &&
    unproven.some((one) => one.listener === listener && one.domain === domain);
  const late = free.filter((one) => !early.includes(one) && !waits(one));
  const held = free.filter((one) => !early.includes(one) && waits(one));
  const awaited = unproven.filter((one) =>
    held.some(({ listener, domain }) => one.listener === listener && one.domain === domain),
  );
  return {
    early: ruleDeletions(early, pairs, ({ present }) => present !== undefined),
    doomed: new Set(early.map(({ key }) => key)),
    late: ruleDeletions(late, pairs, ({ present, isFrozen }) => present !== undefined || !isFrozen),
    blocked: surplus.filter(isBlocked).map(noticeOfBlocked),
    awaited: awaited.map(({ key }) => key),
  };
}

function isAsked({ wanted, isFrozen }: RulePair): boolean {
  return wanted !== undefined && !isFrozen && wanted.redirect === undefined;
}

/** Reports whether a rule has a target that is known to serve, or is to have none. */
function isProven(pair: RulePair | undefined, { serves }: KnownOfTargets): boolean {
  if (pair?.wanted === undefined) return true;
  const wantsSome = pair.wanted.targets?.some(({ weight }) => weight === 'asIs' || weight > 0) ?? true;
  const live = pair.targets.filter(({ weight }) => weight > 0);
  if (!wantsSome) return true;
  if (pair.wanted.targets === undefined && live.length === 0) return true;
  return live.some((target) => serves?.(target) !== false);
}

function rewritesBy(pairs: readonly RulePair[], { rewrites = [] }: Contents) {
  const keys = new Map(pairs.flatMap(({ key, present }) => (present === undefined ? [] : [[present.ruleId, key]])));
  const bySource = new Map(rewrites.map((one) => [one.sourceRuleId, one]));
  return {
    keyOfRule: (ruleId: string): RuleKey | undefined => keys.get(ruleId),
    rewriteOf: (rule: Rule | undefined) => (rule === undefined ? undefined : bySource.get(rule.ruleId)),
  };
}

/** Plans new rules, and changes of those that are there. */
function changeSteps(pairs: readonly RulePair[], doomed: ReadonlySet<RuleKey>): readonly PlainStep[] {
  const served = pairs.filter(({ wanted, isFrozen }) => wanted !== undefined && !isFrozen);
  const byListener = Map.groupBy(served, ({ listener }) => listener);
  return [...byListener].flatMap(([listener, its]): readonly PlainStep[] => {
    const present = new Map(
      pairs.flatMap((one) =>
        one.listener === listener && one.present && !doomed.has(one.key) ? [[one.domain, one.present] as const] : [],
      ),
    );
    const specs = its.flatMap((one) =>
      one.present === undefined && one.wanted !== undefined ? [specOf(one.wanted, present.has(one.domain))] : [],
    );
    return [
      ...batches(specs, RULES_PER_CHANGE).map((rules) => ({ kind: 'createRules' as const, listener, rules })),
      ...its.flatMap(settingSteps),
      ...domainSteps(listener, its, present),
    ];
  });
}

function specOf(rule: DesiredRule, isKnownDomain: boolean): RuleSpec {
  const { domain, url, settings, initialSettings = settings, certificate, isDefault } = rule;
  const its = certificate === undefined || isKnownDomain ? undefined : certificateOf(certificate);
  return {
    ...{ domain, url, settings: initialSettings },
    ...(its === undefined ? {} : { certificate: its }),
    ...(isDefault === true && !isKnownDomain ? { isDefault } : {}),
  };
}

function settingSteps({ key, wanted, present }: RulePair): readonly PlainStep[] {
  if (wanted === undefined || present === undefined) return [];
  const changes = changesOf<RuleSettings>(wanted.settings, present);
  const { listenerId, ruleId } = present;
  return changes === undefined ? [] : [{ kind: 'modifyRule', rule: { listenerId, ruleId, key }, changes }];
}

function domainSteps(
  listener: RuleListenerKey,
  pairs: readonly RulePair[],
  present: ReadonlyMap<string, Rule>,
): readonly PlainStep[] {
  return [...Map.groupBy(pairs, ({ domain }) => domain)].flatMap(([domain, its]): readonly PlainStep[] => {
    const rule = present.get(domain);
    if (rule === undefined) return [];
    const [first] = its;
    const certificate = first?.wanted?.certificate === undefined ? undefined : certificateOf(first.wanted.certificate);
    const isOther = certificate !== undefined && !isSameCertificate(certificate, rule.certificate);
    const becomesDefault = !rule.isDefault && its.some(({ wanted }) => wanted?.isDefault === true);
    const changes = {
      ...(isOther ? { certificate } : {}),
      ...(becomesDefault ? { isDefault: true as const } : {}),
    };
    return isOther || becomesDefault ? [{ kind: 'modifyDomain', listener, domain, changes }] : [];
  });
}

/** @param isThere whether a rule that stays is there when these go */
function ruleDeletions(
  doomed: readonly RulePair[],
  pairs: readonly RulePair[],
  isThere: (pair: RulePair) => boolean,
): readonly PlainStep[] {
  const present = doomed.flatMap((one) => (one.present === undefined ? [] : [{ ...one, present: one.present }]));
  const byListener = Map.groupBy(present, (one) => one.present.listenerId);
  return [...byListener].flatMap(([listenerId, its]) => {
    const ids = new Set(its.map((one) => one.present.ruleId));
    const left = pairs.filter((one) => one.listener === its[0]?.listener && !ids.has(one.present?.ruleId ?? ''));
    const stays = left.filter(isThere);
    const losesDefault = its.some((one) => one.present.isDefault) && !stays.some((one) => one.present?.isDefault);
    const next = stays.find(({ wanted }) => wanted?.isDefault === true) ?? stays[0];
    const newDefault = losesDefault && next !== undefined ? { newDefaultDomain: next.domain } : {};
    return batches([...ids], RULES_PER_CHANGE).map((ruleIds) => ({
      ...{ kind: 'deleteRules' as const, listenerId, ruleIds },
      ...newDefault,
    }));
  });
}

function leavingSteps(
  leaving: readonly Listener[],
  gone: readonly Listener[],
  observed: Contents,
): readonly LoadBalancerStep[] {
  const its = leaving.filter((one) => !gone.includes(one));
  return [
    ...rewriteDeletions(redirectsOf(its, observed)),
    ...listenerDeletions(its.map(({ listenerId }) => listenerId)),
  ];
}

function redirectsOf(listeners: readonly Listener[], { rewrites = [] }: Contents) {
  const ids = new Set(listeners.map(({ listenerId }) => listenerId));
  return rewrites.filter(({ sourceListenerId }) => ids.has(sourceListenerId));
}

function newListener({ protocol, port }: DesiredRuleListener) {
  return { protocol, port, settings: protocol === 'HTTPS' ? { isSni: true } : {} };
}

function sniSteps({ wanted: { protocol }, present }: ListenerPair): readonly PlainStep[] {
  if (protocol === 'HTTP' || present === undefined || present.isSni === true) return [];
  return [{ kind: 'modifyListener', listenerId: present.listenerId, changes: { isSni: true } }];
}

/** Returns what the domain is to have; undefined: the domain keeps what it has. */
function certificateOf(certificate: DesiredCertificate): ListenerCertificate | undefined {
  if (certificate.kind !== 'existing') return undefined;
  const { ids, caId } = certificate;
  return { certIds: ids, ...(caId === undefined ? {} : { caCertId: caId }) };
}

function isSameCertificate(wanted: ListenerCertificate, present: ListenerCertificate | undefined): boolean {
  if (present === undefined || wanted.caCertId !== present.caCertId) return false;
  return wanted.certIds.toSorted().join() === present.certIds.toSorted().join();
}

function noticeOfBlocked({ key, present }: RulePair): Notice {
  const message = `the rule ${present?.ruleId} (${key}) is not asked for any more, and stays, as a redirect that is not of this Ingress leads to it; remove that`;
  return remark('ListenerClash', message);
}

function redirectKeyOf({ protocol, port, domain, url }: NonNullable<DesiredRule['redirect']>): RuleKey {
  return ruleKeyOf(`${protocol}/${port}`, { domain, url });
}

function keyOf({ protocol, port }: Pick<DesiredRuleListener, 'protocol' | 'port'>): RuleListenerKey {
  return `${protocol}/${port}`;
}
