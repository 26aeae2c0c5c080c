import type { RightsListener } from '../kube/note-rights.ts';
import { rightCure, TOKEN_RIGHT } from '../kube/note-rights.ts';
import type { Logger } from '../runtime/log.ts';
import type { NodeEvents } from './node/node-deps.ts';
import type { CloudRefusalListener } from './observability/cloud-rights.ts';
import type { ProblemBook } from './observability/problem-book.ts';

/** Where missing rights are told. */
export type RightsDeps = {
  readonly log: Logger;
  readonly problems: ProblemBook;
  /** The object that people look at for what ipamd is set up with. */
  readonly configMap: { readonly namespace: string; readonly name: string };
  /** Made later than the client that is watched: it writes by that client. */
  readonly events: () => NodeEvents;
};

const ROLE = 'tke-eni-ipamd';

/** Makes what tells of calls that the cloud refuses whoever asks: a log line and an event; the metric is there already. */
export function createRefusalTeller({ log, configMap, events }: Omit<RightsDeps, 'problems'>): CloudRefusalListener {
  return ({ kind, message }) => {
    log.error('the cloud refuses calls', { kind, detail: message });
    const involved = { apiVersion: 'v1', kind: 'ConfigMap', ...configMap };
    events().record({ involved, type: 'Warning', reason: kind, message });
  };
}

/** Makes what tells of rights that ipamd misses: a log line, a metric, and an event at its ConfigMap. */
export function createRightsTeller({ log, problems, configMap, events }: RightsDeps): RightsListener {
  return (right, error) => {
    const kind = right === TOKEN_RIGHT ? 'Unauthorized' : 'Forbidden';
    problems.report(`right/${right}`, error === undefined ? [] : [{ kind, name: right }]);
    if (error === undefined) return log.info('a right is there again', { right });
    const message = rightCure(right, error, ROLE);
    log.error('a right is missing', { right, detail: message });
    const involved = { apiVersion: 'v1', kind: 'ConfigMap', ...configMap };
    return events().record({ involved, type: 'Warning', reason: kind, message });
  };
}
