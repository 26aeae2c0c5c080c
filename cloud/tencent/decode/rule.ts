import { isIP } from 'node:net';
import { boolean, optional, record, required } from '../../../runtime/decode.ts';
import { classifyError } from '../../classify-error.ts';
import type { Rewrite } from '../../rewrites.ts';
import type { Rule } from '../../rules.ts';
import { CERTIFICATE, certificateOf } from './certificate-output.ts';
import { COUNT, decodeAnswer, listUpTo, SHORT_NAME, SHORT_TEXT, timeOf } from './fields.ts';
import { CHECK, healthCheckOf } from './health-check.ts';

/** More rules of one load balancer than any quota gives. */
const MAX_RULES = 100_000;

const REWRITE_TARGET = record(
  {
    TargetListenerId: optional(SHORT_TEXT),
    TargetLocationId: optional(SHORT_TEXT),
    RewriteCode: optional(COUNT),
    TakeUrl: optional(boolean),
  },
  'ignore',
);

/** A rule as the API writes it: of a listener, or as the source of a redirect. */
export const RULE = record(
  {
    LocationId: required(SHORT_NAME),
    ListenerId: optional(SHORT_TEXT),
    Domain: optional(SHORT_TEXT),
    Url: optional(SHORT_TEXT),
    DefaultServer: optional(boolean),
    SessionExpireTime: optional(COUNT),
    HealthCheck: optional(CHECK),
    Certificate: optional(CERTIFICATE),
    Scheduler: optional(SHORT_TEXT),
    ForwardType: optional(SHORT_TEXT),
    RewriteTarget: optional(REWRITE_TARGET),
    BeAutoCreated: optional(boolean),
    CreateTime: optional(SHORT_TEXT),
  },
  'ignore',
);

type WireRule = NonNullable<ReturnType<typeof RULE>>;

/** Converts a rule of the API. The address of the load balancer in the place of a domain becomes ''. */
export function ruleOf(wire: WireRule): Rule {
  const { Domain: domain = '', Scheduler, SessionExpireTime, ForwardType = '', HealthCheck } = wire;
  const { TargetListenerId: listenerId = '', TargetLocationId: ruleId = '' } = wire.RewriteTarget ?? {};
  const certificate = certificateOf(wire.Certificate);
  return {
    ruleId: wire.LocationId,
    domain: isIP(domain) === 0 ? domain : '',
    url: wire.Url ?? '',
    isDefault: wire.DefaultServer ?? false,
    ...(Scheduler === undefined ? {} : { scheduler: Scheduler }),
    ...(SessionExpireTime === undefined ? {} : { sessionSeconds: SessionExpireTime }),
    ...(HealthCheck === undefined ? {} : { healthCheck: healthCheckOf(HealthCheck) }),
    ...(ForwardType === '' ? {} : { forwardType: ForwardType }),
    ...(certificate === undefined ? {} : { certificate }),
    ...(listenerId === '' || ruleId === '' ? {} : { rewriteTo: { listenerId, ruleId } }),
    createdAtMs: timeOf(wire.CreateTime),
  };
}

const CREATED = record({ LocationIds: required(listUpTo(MAX_RULES, SHORT_NAME)) }, 'ignore');

/** Decodes the answer of CreateRule for so many rules. @throws CloudError BAD_ANSWER */
export function decodeCreatedRules(value: unknown, rules: number): readonly string[] {
  const { LocationIds } = decodeAnswer(CREATED, value, 'CreateRule');
  if (LocationIds.length === rules) return LocationIds;
  const text = `the answer has ${LocationIds.length} ids for ${rules} rules`;
  throw classifyError({ code: 'BAD_ANSWER', action: 'CreateRule', text });
}

const REWRITES = record({ RewriteSet: optional(listUpTo(MAX_RULES, RULE)) }, 'ignore');

/** Decodes the answer of DescribeRewrite. @throws CloudError BAD_ANSWER also when a redirect lacks its source or target */
export function decodeRewrites(value: unknown): readonly Rewrite[] {
  const { RewriteSet = [] } = decodeAnswer(REWRITES, value, 'DescribeRewrite');
  return RewriteSet.map((wire) => {
    const { ListenerId: sourceListenerId = '', RewriteTarget: target = {} } = wire;
    const { TargetListenerId: targetListenerId = '', TargetLocationId: targetRuleId = '', RewriteCode } = target;
    if (sourceListenerId === '' || targetListenerId === '' || targetRuleId === '') {
      const text = `the redirect of ${wire.LocationId} lacks a listener or its target`;
      throw classifyError({ code: 'BAD_ANSWER', action: 'DescribeRewrite', text });
    }
    return {
      sourceListenerId,
      sourceRuleId: wire.LocationId,
      targetListenerId,
      targetRuleId,
      ...(RewriteCode === undefined ? {} : { code: RewriteCode }),
      takesUrl: target.TakeUrl ?? false,
      isAutomatic: wire.BeAutoCreated ?? false,
    };
  });
}
