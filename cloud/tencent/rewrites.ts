import { classifyError } from '../classify-error.ts';
import { REWRITES_PER_CHANGE, type RewritePort } from '../rewrites.ts';
import type { Caller } from './caller.ts';
import { decodeAccepted } from './decode/load-balancer.ts';
import { decodeRewrites } from './decode/rule.ts';
import { requireCount } from './require-count.ts';

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
