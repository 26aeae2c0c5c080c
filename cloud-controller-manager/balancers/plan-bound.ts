import { blocking, type Notice, type NoticeReason } from './notice.ts';

/**
 * Most rules that the plan of one object is multiplied out to, some tens of milliseconds of work: twice what a load
 * balancer holds with the cloud's quotas of 50 listeners with 50 rules.
 */
export const MAX_RULES_OF_PLAN = 5_000;

/** Most targets, and endpoints by ports: what a load balancer holds with the cloud's quotas, 100 targets for each of 50 x 50 rules. */
export const MAX_TARGETS_OF_PLAN = 250_000;

/** Most of all else: source ranges by ports, pairs that are compared. */
export const MAX_ITEMS_OF_PLAN = 50_000;
/** The cloud's quota of targets of a listener or rule. */
const TARGETS_OF_PLACE = 100;

/** Lengths that are multiplied, by what each counts: `{ rules: 16_000, ports: 50 }`. */
type Product = { readonly lengths: Readonly<Record<string, number>>; readonly most?: number; readonly cure: string };

/**
 * Returns how many targets a listener or rule may have where the quota is not known: what the bound leaves each, and at least
 * the cloud's default. A smaller number would take targets from an account whose quota was raised.
 */
export function assumeTargets(places: number): number {
  return Math.max(TARGETS_OF_PLACE, Math.floor(MAX_TARGETS_OF_PLAN / Math.max(1, places)));
}

/** Refuses an object that would be multiplied out to too much; to be called before that is done. */
export function refuseProducts(
  reason: Extract<NoticeReason, 'IngressRefused' | 'ServiceRefused'>,
  products: readonly Product[],
): readonly Notice[] {
  return products.flatMap(({ lengths, most = MAX_ITEMS_OF_PLAN, cure }) => {
    const count = Object.values(lengths).reduce((one, other) => one * other, 1);
    if (count <= most) return [];
    const factors = Object.entries(lengths).map(([what, length]) => `${length} ${what}`);
    const product = factors.length === 1 ? `${factors[0]} are too many` : `${factors.join(' x ')} are ${count}`;
    const message = `${product}, and at most ${most} are planned for one object; ${cure}. Nothing of its load balancer is changed until then`;
    return [blocking(reason, message)];
  });
}
