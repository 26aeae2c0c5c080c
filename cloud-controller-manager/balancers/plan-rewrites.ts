import { REWRITES_PER_CHANGE, type Rewrite } from '../../cloud/rewrites.ts';
import type { DesiredRedirect } from './desired-rules.ts';
import type { LoadBalancerStep, PlainStep, RewriteRef } from './load-balancer-step.ts';
import { type RuleKey, type RuleListenerKey, ruleKeyOf } from './target-place.ts';
import { batches } from './target-steps.ts';

/** A rule of an owner, as far as its redirect depends on it. */
export type RedirectedRule = {
  readonly key: RuleKey;
  readonly listener: RuleListenerKey;
  readonly domain: string;
  readonly url: string;
  /** Absent: it has none, or the rule is not asked for. */
  readonly wanted?: DesiredRedirect;
  /** Absent: there is none. */
  readonly present?: Rewrite;
  /** Whether requests of it are answered now, by a redirect or by targets. */
  readonly isLive: boolean;
  /** Whether the rule is to go. */
  readonly isSurplus: boolean;
};

/** What is known of all rules of the owner. */
type RewriteFacts = {
  readonly rules: readonly RedirectedRule[];
  /** The key of a rule that is there; undefined: it is of others. */
  readonly keyOf: (ruleId: string) => RuleKey | undefined;
  /** Whether a rule has a target that is known to serve, or is to have none. */
  readonly isProven: (rule: RuleKey) => boolean;
};

/** What is done about redirects. */
type RewritePlan = {
  readonly deletions: readonly PlainStep[];
  readonly creations: readonly PlainStep[];
  /** Rules whose targets have to serve before a redirect is changed. */
  readonly awaited: ReadonlySet<RuleKey>;
  /** Rules that a redirect, which stays for now, comes from or leads to. */
  readonly kept: ReadonlySet<RuleKey>;
};

type Change = {
  readonly rule: RedirectedRule;
  readonly involved: readonly RuleKey[];
  /** The rule whose targets have to serve before. */
  readonly awaits?: RuleKey;
};

/**
 * Plans redirects. Where requests are answered now, one is made or removed only when a target of the rule that takes its
 * place serves. A rule is the source of one redirect at most, and none is source and target: changes that have a rule in common wait
 * for each other.
 */
export function planRewrites(facts: RewriteFacts): RewritePlan {
  const changes = facts.rules.flatMap((rule) => changeOf(rule, facts));
  const waiting = new Set(changes.filter(({ awaits }) => awaits !== undefined));
  const kept = new Set([...waiting].flatMap(({ involved }) => involved));
  let hasGrown = waiting.size > 0;
  while (hasGrown) {
    hasGrown = false;
    for (const change of changes) {
      if (waiting.has(change) || !change.involved.some((key) => kept.has(key))) continue;
      waiting.add(change);
      for (const key of change.involved) kept.add(key);
      hasGrown = true;
    }
  }
  const now = changes.filter((change) => !waiting.has(change));
  return {
    deletions: rewriteDeletions(now.flatMap(({ rule: { present } }) => present ?? [])),
    creations: creationsOf(now.map(({ rule }) => rule)),
    awaited: new Set(changes.flatMap(({ awaits }) => awaits ?? [])),
    kept,
  };
}

/** Plans the deletion of redirects: one call deletes those between two listeners. */
export function rewriteDeletions(
  rewrites: readonly RewriteRef[],
): readonly Extract<PlainStep, { readonly kind: 'deleteRewrites' }>[] {
  const byPair = Map.groupBy(rewrites, (one) => `${one.sourceListenerId} ${one.targetListenerId}`);
  return [...byPair.values()].flatMap((its) =>
    batches(its, REWRITES_PER_CHANGE).map((batch) => ({ kind: 'deleteRewrites', rewrites: batch.map(refOf) })),
  );
}

/** Reports whether a redirect is as wanted. A code that the cloud does not report is not compared. */
export function isSameRedirect(
  wanted: DesiredRedirect,
  present: Rewrite | undefined,
  keyOf: RewriteFacts['keyOf'],
  url: string,
): boolean {
  if (present === undefined) return false;
  const isSameTarget = keyOf(present.targetRuleId) === targetOf(wanted);
  return isSameTarget && (present.code ?? wanted.code) === wanted.code && present.takesUrl === takesUrl(wanted, url);
}

function changeOf(rule: RedirectedRule, { keyOf, isProven }: RewriteFacts): readonly Change[] {
  const { key, wanted, present, isLive, isSurplus, url } = rule;
  if (wanted === undefined && present === undefined) return [];
  if (wanted !== undefined && isSameRedirect(wanted, present, keyOf, url)) return [];
  const before = present === undefined ? undefined : keyOf(present.targetRuleId);
  const after = wanted === undefined ? undefined : targetOf(wanted);
  const successor = after ?? (isSurplus ? undefined : key);
  const isAwaited = isLive && successor !== undefined && !isProven(successor);
  const involved = [key, ...(before === undefined ? [] : [before]), ...(after === undefined ? [] : [after])];
  return [{ rule, involved, ...(isAwaited ? { awaits: successor } : {}) }];
}

function creationsOf(rules: readonly RedirectedRule[]): readonly PlainStep[] {
  const made = rules.flatMap((rule) => (rule.wanted === undefined ? [] : [{ ...rule, wanted: rule.wanted }]));
  const listenerOf = ({ protocol, port }: DesiredRedirect): RuleListenerKey => `${protocol}/${port}`;
  const byPair = Map.groupBy(made, ({ listener, wanted }) => `${listener} ${listenerOf(wanted)}`);
  return [...byPair.values()].flatMap((its) =>
    batches(its, REWRITES_PER_CHANGE).flatMap((batch): readonly PlainStep[] => {
      const [first] = batch;
      if (first === undefined) return [];
      const rewrites = batch.map(({ key, domain, url, wanted }) => ({
        source: key,
        sourceDomain: domain,
        target: targetOf(wanted),
        code: wanted.code,
        takesUrl: takesUrl(wanted, url),
      }));
      const step: Extract<LoadBalancerStep, { readonly kind: 'createRewrites' }> = {
        kind: 'createRewrites',
        source: first.listener,
        target: listenerOf(first.wanted),
        rewrites,
      };
      return [step];
    }),
  );
}

function targetOf({ protocol, port, domain, url }: DesiredRedirect): RuleKey {
  return ruleKeyOf(`${protocol}/${port}`, { domain, url });
}

/** A redirect to the same path keeps what follows it in the request. */
function takesUrl(wanted: DesiredRedirect, url: string): boolean {
  return wanted.url === url;
}

function refOf({ sourceListenerId, sourceRuleId, targetListenerId, targetRuleId }: RewriteRef): RewriteRef {
  return { sourceListenerId, sourceRuleId, targetListenerId, targetRuleId };
}
