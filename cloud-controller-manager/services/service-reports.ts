import type { Logger } from '../../runtime/log.ts';
import type { CcmEvents } from '../events/event-reasons.ts';
import type { NoticeReason } from './notice.ts';
import type { ServiceHead } from './read-service.ts';

/** What is wrong with a Service now. */
type ServiceProblem = {
  readonly reason: NoticeReason | 'DeleteLoadBalancerFailed' | 'StatusForbidden';
  readonly message: string;
};

/** What was done for a Service. */
type ServiceProgress = {
  readonly reason:
    | 'EnsuringLoadBalancer'
    | 'EnsuredLoadBalancer'
    | 'UpdatedLoadBalancer'
    | 'DeletingLoadBalancer'
    | 'DeletedLoadBalancer';
  readonly message: string;
};

type Reported = Pick<ServiceHead, 'key' | 'namespace' | 'name' | 'uid'>;

/** Reports about Services, as events and in the log: a problem once, until it is over. */
export class ServiceReports {
  readonly #events: CcmEvents;
  readonly #log: Logger;
  readonly #reported = new Map<string, ReadonlySet<string>>();

  constructor(events: CcmEvents, log: Logger) {
    this.#events = events;
    this.#log = log;
  }

  /** Reports all problems of a Service; those that it had before are not repeated. */
  problems(service: Reported, problems: readonly ServiceProblem[]): void {
    const before = this.#reported.get(service.key);
    const now = new Set(problems.map((problem) => textOf(service, problem)));
    if (now.size === 0) this.#reported.delete(service.key);
    else this.#reported.set(service.key, now);
    for (const problem of problems) {
      if (before?.has(textOf(service, problem))) continue;
      this.#log.warn('a Service has a problem with its load balancer', { service: service.key, ...problem });
      this.#events.record({ involved: involvedOf(service), type: 'Warning', ...problem });
    }
  }

  progress(service: Reported, progress: ServiceProgress): void {
    this.#log.info('the load balancer of a Service', { service: service.key, ...progress });
    this.#events.record({ involved: involvedOf(service), type: 'Normal', ...progress });
  }

  /** Reports what another client changed, and that it is set again. */
  drift(service: Reported, message: string): void {
    this.#log.warn('a load balancer was changed by somebody else', { service: service.key, message });
    this.#events.record({ involved: involvedOf(service), type: 'Warning', reason: 'DriftFound', message });
  }

  forget(key: string): void {
    this.#reported.delete(key);
  }
}

function textOf({ uid }: Reported, { reason, message }: ServiceProblem): string {
  // The id of the request is another one at each try.
  return JSON.stringify([uid, reason, message.replaceAll(/, RequestId=[\w-]+/g, '')]);
}

function involvedOf({ namespace, name, uid }: Reported) {
  return { apiVersion: 'v1', kind: 'Service', namespace, name, ...(uid === '' ? {} : { uid }) };
}
