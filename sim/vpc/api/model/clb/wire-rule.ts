import type { RuleOutput } from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import { writtenTime } from '../limits.ts';
import { wireCertificates } from './layer7.ts';
import type { ModelListener, ModelRule } from './types.ts';

/** A rule as the API writes it. */
export function wireRule(listener: ModelListener, rule: ModelRule): RuleOutput {
  const certificates = listener.layer7?.domains.get(rule.domain);
  const { rewriteTo } = rule;
  return {
    LocationId: rule.ruleId,
    ListenerId: listener.listenerId,
    Domain: rule.domain,
    Domains: [rule.domain],
    Url: rule.url,
    DefaultServer: listener.layer7?.defaultDomain === rule.domain,
    SessionExpireTime: rule.sessionExpireTime,
    HealthCheck: { ...rule.healthCheck },
    Scheduler: rule.scheduler,
    ForwardType: rule.forwardType,
    TargetType: 'NODE',
    BeAutoCreated: false,
    ...(certificates === undefined ? {} : { Certificate: wireCertificates(certificates) }),
    ...(rewriteTo === undefined
      ? {}
      : {
          RewriteTarget: {
            TargetListenerId: rewriteTo.listenerId,
            TargetLocationId: rewriteTo.ruleId,
            RewriteCode: rewriteTo.code,
            TakeUrl: rewriteTo.takesUrl,
            RewriteType: 'Manual',
          },
        }),
    CreateTime: writtenTime(rule.createdAtMs),
  };
}
