import type { EventSink, InvolvedObject } from '../kube/events/event-object.ts';
import { describeMissingRight, type RightsListener, TOKEN_RIGHT } from '../kube/track-rights.ts';
import type { Logger } from '../runtime/log.ts';
import type { CloudRefusalListener } from './cloud-rights.ts';
import type { ProblemRegistry } from './problem-registry.ts';

/** Where missing rights are reported. */
type RightsDeps = {
  readonly log: Logger;
  readonly problems: ProblemRegistry;
  /** The object on which people look for problems of the program's setup. */
  readonly involved: InvolvedObject;
  /** Made later than the client that is observed, because the recorder writes through that client. */
  readonly events: () => EventSink<RightsReason>;
  /** Name of the program in messages, and of its ClusterRole or ServiceAccount. */
  readonly role: string;
};

/** Reasons of the events about rights. */
type RightsReason = 'Forbidden' | 'Unauthorized' | 'ConfigInvalid' | 'CredentialsRefused' | 'CredentialsMissing';

/**
 * Makes the reporter of calls that the cloud refuses to all callers: a log line and an event; the metric exists
 * already.
 */
export function createRefusalReporter({
  log,
  involved,
  events,
}: Pick<RightsDeps, 'log' | 'involved' | 'events'>): CloudRefusalListener {
  return ({ kind, message }) => {
    log.error('the cloud refuses calls', { kind, detail: message });
    events().record({ involved, type: 'Warning', reason: kind, message });
  };
}

/** Makes the reporter of rights that the program lacks: a log line, a metric, and an event. */
export function createRightsReporter({ log, problems, involved, events, role }: RightsDeps): RightsListener {
  return (right, error) => {
    const kind = right === TOKEN_RIGHT ? 'Unauthorized' : 'Forbidden';
    problems.report(`right/${right}`, error === undefined ? [] : [{ kind, name: right }]);
    if (error === undefined) return log.info('a right is there again', { right });
    const message = describeMissingRight(right, error, role);
    log.error('a right is missing', { right, detail: message });
    return events().record({ involved, type: 'Warning', reason: kind, message });
  };
}
