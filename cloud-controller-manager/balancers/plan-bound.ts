import { blocking, type Notice, type NoticeReason } from './notice.ts';

/**
 * Most rules that the plan of one object is multiplied out to, some tens of milliseconds of work: twice what a load
 * balancer holds with the cloud's quotas of 50 listeners with 50 rules.
 */
export const MAX_RULES_OF_PLAN = 5_000;

/** Most of all else that is small: targets of rules, endpoints of ports, pairs that are compared. */
export const MAX_ITEMS_OF_PLAN = 50_000;

/** Lengths that are multiplied, by what each counts: `{ rules: 16_000, ports: 50 }`. */
type Product = { readonly lengths: Readonly<Record<string, number>>; readonly most?: number; readonly cure: string };

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
