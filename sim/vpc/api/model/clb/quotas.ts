import type { DescribeQuotaResponse } from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import { ApiError } from '../api-error.ts';
import type { ModelCall } from '../call.ts';
import type { ClbState } from './clb-state.ts';

/** Answers DescribeQuota. */
export function describeQuota({ state }: ModelCall): Partial<DescribeQuotaResponse> {
  const { limits } = state.clb;
  const rows: readonly (readonly [string, number | null, number])[] = [
    ['TOTAL_OPEN_CLB_QUOTA', countOf(state.clb, 'OPEN'), limits.openBalancers],
    ['TOTAL_INTERNAL_CLB_QUOTA', countOf(state.clb, 'INTERNAL'), limits.internalBalancers],
    ['TOTAL_LISTENER_QUOTA', null, limits.listeners],
    ['TOTAL_LISTENER_RULE_QUOTA', null, limits.rules],
    ['TOTAL_TARGET_BIND_QUOTA', null, limits.targets],
    ['TOTAL_SNAT_IP_QUOTA', null, limits.snatIps],
  ];
  return {
    QuotaSet: rows.map(([QuotaId, current, QuotaLimit]) => ({
      QuotaId,
      // The SDK's type leaves out what its comment says: null where there is nothing to count.
      QuotaCurrent: current as number,
      QuotaLimit,
    })),
  };
}

/** @throws ApiError LimitExceeded when `count` more of a type are more than the account may have */
export function requireBalancerQuota(clb: ClbState, type: 'OPEN' | 'INTERNAL', count: number): void {
  const limit = type === 'OPEN' ? clb.limits.openBalancers : clb.limits.internalBalancers;
  requireQuota(countOf(clb, type) + count, limit, `${type} load balancers`);
}

/** @throws ApiError LimitExceeded when `wanted` is more than `limit` */
export function requireQuota(wanted: number, limit: number, what: string): void {
  if (wanted > limit) throw new ApiError('LimitExceeded', `The quota of ${what} is ${limit}; ${wanted} are wanted.`);
}

function countOf(clb: ClbState, type: 'OPEN' | 'INTERNAL'): number {
  return [...clb.balancers().values()].filter((balancer) => balancer.type === type).length;
}
