import type { DesiredRule, DesiredRuleListener } from '../balancers/desired-rules.ts';
import type { RuleKey } from '../balancers/target-place.ts';
import type { IngressHead } from './read-ingress.ts';
import type { RuleClaim } from './resolve-clashes.ts';

/** A claim of an Ingress that is gone comes after those of all that are there. */
const LAST = '~';
/** Rules that are not asked for any more, and may still be there: more than a load balancer has. */
const MAX_PLACED = 5_000;

/** Remembers which rules Ingresses of groups ask for, and which of those that are gone stay. */
export class GroupClaims {
  /** By Ingress: the rules that it asked for last, while they could be read. */
  readonly #last = new Map<string, readonly DesiredRuleListener[]>();
  /** By unit: rules that stay though their Ingress is gone. */
  readonly #left = new Map<string, readonly RuleClaim[]>();

  /** By unit: rules that were asked for since the start, the latest last. */
  readonly #placed = new Map<string, Set<RuleKey>>();

  /** Returns the rules that an Ingress asked for last; undefined: that is not known. */
  get(key: string): readonly DesiredRuleListener[] | undefined {
    return this.#last.get(key);
  }

  /** Notes what an Ingress asks for. */
  note(key: string, listeners: readonly DesiredRuleListener[]): void {
    this.#last.set(key, listeners);
  }

  /** Notes that the rules of an Ingress stay when it goes, until another one of the group asks for their hosts and paths. */
  leave(unitKey: string, { key, uid }: IngressHead): void {
    const listeners = this.get(key) ?? [];
    if (listeners.length === 0) return;
    const others = this.left(unitKey).filter(({ ingress }) => ingress.uid !== uid);
    this.#left.set(unitKey, [...others, lastClaim({ key, uid }, retarget(listeners, []))]);
  }

  /** Returns the claim of an Ingress that goes: it comes after all others. */
  static leaving({ key, uid }: IngressHead, listeners: readonly DesiredRuleListener[]): RuleClaim {
    return { ...lastClaim({ key, uid }, listeners), role: 'leaving' };
  }

  /** Returns what stays of a unit though the Ingresses are gone. */
  left(unitKey: string): readonly RuleClaim[] {
    return this.#left.get(unitKey) ?? [];
  }

  /** Notes the rules that a unit is to have; returns all of which this process has noted that, without them. */
  place(unitKey: string, keys: ReadonlySet<RuleKey>): readonly RuleKey[] {
    const placed = [...(this.#placed.get(unitKey) ?? [])].filter((key) => !keys.has(key)).slice(-MAX_PLACED);
    this.#placed.set(unitKey, new Set([...placed, ...keys]));
    return placed;
  }

  /** Forgets an Ingress. */
  forget(key: string): void {
    this.#last.delete(key);
  }

  /** Forgets a unit that has no Ingress any more. */
  forgetUnit(unitKey: string): void {
    this.#left.delete(unitKey);
    this.#placed.delete(unitKey);
  }
}

function lastClaim(
  { key, uid }: Pick<IngressHead, 'key' | 'uid'>,
  listeners: readonly DesiredRuleListener[],
): RuleClaim {
  return { ingress: { key, uid, createdAt: LAST }, isGrouped: true, listeners, former: listeners };
}

/** Returns rules that were asked for before with the targets that they have in a new plan; those of others stay as they are. */
export function retarget(
  before: readonly DesiredRuleListener[],
  now: readonly DesiredRuleListener[],
): readonly DesiredRuleListener[] {
  return before.map((listener) => {
    const same = now.find(({ protocol, port }) => protocol === listener.protocol && port === listener.port);
    const ruleOf = new Map(same?.rules.map((rule) => [idOf(rule), rule]));
    const rules = listener.rules.map(({ targets: _, keptIps: __, keepsNodes: ___, ...rule }) => {
      const { targets, keptIps, keepsNodes }: Partial<DesiredRule> = ruleOf.get(idOf(rule)) ?? {};
      return {
        ...rule,
        ...(targets === undefined ? {} : { targets }),
        ...(keptIps === undefined ? {} : { keptIps }),
        ...(keepsNodes === undefined ? {} : { keepsNodes }),
      };
    });
    return { ...listener, rules };
  });
}

function idOf({ domain, url }: Pick<DesiredRule, 'domain' | 'url'>): string {
  return `${domain} ${url}`;
}
