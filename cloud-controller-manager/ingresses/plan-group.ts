import type { DesiredRuleListener } from '../balancers/desired-rules.ts';
import { blocking, type Notice } from '../balancers/notice.ts';
import type { OwnerPlan } from '../balancers/owner-plan.ts';
import type { IngressHead } from './read-ingress.ts';
import { type RuleClaim, resolveClashes } from './resolve-clashes.ts';

/** What a unit of Ingresses gets of its load balancer, together and each. */
type GroupPlan = {
  readonly listeners: readonly DesiredRuleListener[];
  /** By uid of the Ingress. */
  readonly noticesOf: ReadonlyMap<string, readonly Notice[]>;
};

/** Puts the rules of Ingresses on the listeners of one load balancer, those of the older ones first. */
export function planGroup(claims: readonly RuleClaim[], maxRules: number): GroupPlan {
  const granted = resolveClashes(claims, maxRules);
  const byPort = new Map<number, DesiredRuleListener>();
  for (const { listeners } of granted.values())
    for (const one of listeners) {
      const known = byPort.get(one.port);
      byPort.set(one.port, known === undefined ? one : { ...one, ...known, rules: [...known.rules, ...one.rules] });
    }
  return {
    listeners: [...byPort.values()].toSorted((one, other) => one.port - other.port),
    noticesOf: new Map([...granted].map(([uid, { notices }]) => [uid, notices])),
  };
}

/** Returns why the rules of a group stay as they are. */
export function heldBy({ key }: Pick<IngressHead, 'key'>): Notice {
  const message = `the rules of the load balancer stay as they are, as those of the Ingress ${key}, which shares it, are not known: it cannot be served, as its events say, or has mode skip. Targets follow`;
  return blocking('IngressRefused', message);
}

/** Puts the plans of Ingresses together, but for what is desired of the load balancer. */
export function planOf(
  planned: readonly { readonly plan: Pick<OwnerPlan, 'unbound' | 'afterMs'> }[],
  ruleListeners: readonly DesiredRuleListener[],
): Omit<OwnerPlan, 'notices'> {
  const unbound = planned.flatMap(({ plan }) => plan.unbound ?? []);
  const waits = planned.flatMap(({ plan }) => plan.afterMs ?? []);
  return {
    ...{ listeners: [], ruleListeners },
    ...(unbound.length === 0
      ? {}
      : {
          unbound: {
            impossible: new Set(unbound.flatMap(({ impossible }) => [...impossible])),
            unselected: new Set(unbound.flatMap(({ unselected }) => [...unselected])),
          },
        }),
    ...(waits.length === 0 ? {} : { afterMs: Math.min(...waits) }),
  };
}
