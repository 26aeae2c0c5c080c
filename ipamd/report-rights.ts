import type { RightsListener } from '../kube/track-rights.ts';
import { describeMissingRight, TOKEN_RIGHT } from '../kube/track-rights.ts';
import type { Logger } from '../runtime/log.ts';
import type { NodeEvents } from './node/node-deps.ts';
import type { CloudRefusalListener } from './observability/cloud-rights.ts';
import type { ProblemRegistry } from './observability/problem-registry.ts';

/** Where missing rights are reported. */
type RightsDeps = {
  readonly log: Logger;
  readonly problems: ProblemRegistry;
  /** The object on which people look for problems of ipamd's setup. */
  readonly configMap: { readonly namespace: string; readonly name: string };
  /** Made later than the client that is observed, because the recorder writes through that client. */
  readonly events: () => NodeEvents;
};

const ROLE = 'tke-eni-ipamd';

/**
 * Makes the reporter of calls that the cloud refuses to all callers: a log line and an event; the metric exists
 * already.
 */
export function createRefusalReporter({ log, configMap, events }: Omit<RightsDeps, 'problems'>): CloudRefusalListener {
  return ({ kind, message }) => {
    log.error('the cloud refuses calls', { kind, detail: message });
    const involved = { apiVersion: 'v1', kind: 'ConfigMap', ...configMap };
    events().record({ involved, type: 'Warning', reason: kind, message });
  };
}

/** Makes the reporter of rights that ipamd lacks: a log line, a metric, and an event on its ConfigMap. */
export function createRightsReporter({ log, problems, configMap, events }: RightsDeps): RightsListener {
  return (right, error) => {
    const kind = right === TOKEN_RIGHT ? 'Unauthorized' : 'Forbidden';
    problems.report(`right/${right}`, error === undefined ? [] : [{ kind, name: right }]);
    if (error === undefined) return log.info('a right is there again', { right });
    const message = describeMissingRight(right, error, ROLE);
    log.error('a right is missing', { right, detail: message });
    const involved = { apiVersion: 'v1', kind: 'ConfigMap', ...configMap };
    return events().record({ involved, type: 'Warning', reason: kind, message });
  };
}
