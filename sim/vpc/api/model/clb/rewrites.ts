import type { DescribeRewriteResponse } from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import { ApiError } from '../api-error.ts';
import type { ModelCall } from '../call.ts';
import { layer7Of, ruleOf, withRule } from './layer7.ts';
import { listenerOf } from './listeners.ts';
import { allRules, withoutRewrite } from './redirects.ts';
import { changeLater } from './tasks.ts';
import type { ModelListener, ModelLoadBalancer, ModelRedirect, ModelRule } from './types.ts';
import { wireRule } from './wire-rule.ts';

const MOST_REWRITES = 50;
const MOST_IDS = 100;
const CODES = [301, 302, 307] as const;

/** Answers ManualRewrite: all of them, or none. No chain and no loop: a rule is a source or a target. */
export function manualRewrite(call: ModelCall): object {
  const { balancer, source, target, infos } = readPairs(call, ['RewriteCode', 'TakeUrl', 'SourceDomain']);
  const sources = new Set(
    allRules(balancer).flatMap(({ ruleId, rewriteTo }) => (rewriteTo === undefined ? [] : [ruleId])),
  );
  const targets = new Set(allRules(balancer).flatMap(({ rewriteTo }) => rewriteTo?.ruleId ?? []));
  const made = infos.map(({ info, from, to }) => {
    if (sources.has(from.ruleId) || targets.has(from.ruleId) || sources.has(to.ruleId) || from.ruleId === to.ruleId) {
      throw new ApiError(
        'InvalidParameter.RewriteAlreadyExist',
        `A redirect from ${from.ruleId} to ${to.ruleId} would be the second one, or a chain.`,
      );
    }
    sources.add(from.ruleId);
    targets.add(to.ruleId);
    const code = info.integer('RewriteCode', CODES[0], CODES[0], CODES[2]);
    const known = CODES.find((one) => one === code);
    if (known === undefined)
      throw new ApiError('InvalidParameterValue', `RewriteCode must be one of ${CODES.join(', ')}.`);
    if (info.has('RewriteCode')) requireDetails(info.has('TakeUrl'), info.text('SourceDomain'), from);
    const redirect: ModelRedirect = {
      listenerId: target.listenerId,
      ruleId: to.ruleId,
      code: known,
      takesUrl: info.flag('TakeUrl') ?? true,
    };
    return { ruleId: from.ruleId, redirect };
  });
  changeLater(call, balancer, (before) =>
    made.reduce(
      (now, { ruleId, redirect }) =>
        withRule(now, source.listenerId, ruleId, (rule) => ({ ...rule, rewriteTo: redirect })),
      before,
    ),
  );
  return {};
}

/** Answers DescribeRewrite: the rules that are redirected. */
export function describeRewrites({ state, params, asOfMs }: ModelCall): Partial<DescribeRewriteResponse> {
  const balancer = state.clb.balancer(params.text('LoadBalancerId'), asOfMs);
  const listenerIds = params.texts('SourceListenerIds', MOST_IDS);
  const ruleIds = params.texts('SourceLocationIds', MOST_IDS);
  const found = [...balancer.listeners.values()]
    .filter(({ listenerId }) => listenerIds.length === 0 || listenerIds.includes(listenerId))
    .flatMap((listener) =>
      [...(listener.layer7?.rules.values() ?? [])]
        .filter(
          ({ ruleId, rewriteTo }) => rewriteTo !== undefined && (ruleIds.length === 0 || ruleIds.includes(ruleId)),
        )
        .map((rule) => wireRule(listener, rule)),
    );
  return { RewriteSet: found };
}

/** Answers DeleteRewrite: all of them, or none. The rules stay. */
export function deleteRewrites(call: ModelCall): object {
  const { balancer, source, target, infos } = readPairs(call, []);
  for (const { from, to } of infos) {
    if (from.rewriteTo?.listenerId === target.listenerId && from.rewriteTo.ruleId === to.ruleId) continue;
    throw new ApiError('InvalidParameter.SomeRewriteNotFound', `${from.ruleId} is not redirected to ${to.ruleId}.`);
  }
  changeLater(call, balancer, (before) =>
    infos.reduce((now, { from }) => withRule(now, source.listenerId, from.ruleId, withoutRewrite), before),
  );
  return {};
}

function readPairs({ state, params }: ModelCall, fields: readonly string[]) {
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const source = rulesOf(balancer, params.text('SourceListenerId'));
  const target = rulesOf(balancer, params.text('TargetListenerId'));
  const infos = params.parts('RewriteInfos', MOST_REWRITES, ['SourceLocationId', 'TargetLocationId'], fields);
  if (infos.length === 0) throw new ApiError('InvalidParameterValue.Length', 'RewriteInfos is empty.');
  return {
    balancer,
    source,
    target,
    infos: infos.map((info) => ({
      info,
      from: ruleOf(source, info.text('SourceLocationId')),
      to: ruleOf(target, info.text('TargetLocationId')),
    })),
  };
}

function rulesOf(balancer: ModelLoadBalancer, listenerId: string): ModelListener {
  const listener = listenerOf(balancer, listenerId);
  layer7Of(listener);
  return listener;
}

/** With a code the API wants to know whether the path is kept, and the domain of the source. */
function requireDetails(hasTakeUrl: boolean, sourceDomain: string, from: ModelRule): void {
  if (!hasTakeUrl) throw new ApiError('MissingParameter', 'RewriteCode needs TakeUrl.');
  if (sourceDomain === from.domain) return;
  throw new ApiError('InvalidParameterValue', `SourceDomain ${sourceDomain} is not that of ${from.ruleId}.`);
}
