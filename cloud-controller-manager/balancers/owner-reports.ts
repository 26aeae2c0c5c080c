import { contestText } from '../../kube/contest.ts';
import type { InvolvedObject } from '../../kube/events/event-object.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import { Reporter } from '../../kube/reporter.ts';
import { INGRESSES, SERVICES } from '../../kube/resource-types.ts';
import type { Logger } from '../../runtime/log.ts';
import type { CcmEvents } from '../events/event-reasons.ts';
import type { CcmMetrics } from '../observability/metrics.ts';
import type { BalancerOwner, OwnerProblem, OwnerProgress, OwnerReports } from './balancer-owner.ts';

type Reported = Pick<BalancerOwner, 'kind' | 'key' | 'namespace' | 'name' | 'uid'>;

/** Problems of one reason that are reported of one object; the others are counted. */
const MAX_OF_REASON = 20;

/** What events are about, by kind. */
const OBJECTS = {
  service: { type: SERVICES, what: 'a Service' },
  ingress: { type: INGRESSES, what: 'an Ingress' },
} as const;

type ProblemsMetric = CcmMetrics['ingressProblems'];

/** Reports about owners, as events and in the log: a problem once, until it is over. */
export class OwnerEvents implements OwnerReports {
  readonly #events: CcmEvents;
  readonly #log: Logger;
  readonly #known: ProblemsMetric | undefined;
  readonly #reporter: Reporter<OwnerProblem['reason']>;

  /** @param known shows the reasons of all problems that an owner has now */
  constructor(events: CcmEvents, log: Logger, known?: ProblemsMetric) {
    this.#reporter = new Reporter('a load balancer', { events, log });
    this.#events = events;
    this.#log = log;
    this.#known = known;
  }

  /** Reports all problems of an owner; those that it had before are not repeated. */
  problems(owner: Reported, problems: readonly OwnerProblem[]): void {
    const shown = limited(problems);
    this.#reporter.report(involvedOf(owner), shown);
    this.#known?.set(
      owner.key,
      shown.map(({ reason }) => reason),
    );
  }

  progress(owner: Reported, progress: OwnerProgress): void {
    this.#log.info(`the load balancer of ${OBJECTS[owner.kind].what}`, { [owner.kind]: owner.key, ...progress });
    this.#events.record({ involved: involvedOf(owner), type: 'Normal', ...progress });
  }

  /** Reports what another client changed, and what became of it. */
  drift(owner: Reported, message: string): void {
    this.#log.warn('a load balancer was changed by somebody else', { [owner.kind]: owner.key, message });
    this.#events.record({ involved: involvedOf(owner), type: 'Warning', reason: 'DriftFound', message });
  }

  /** Reports that another client writes a field of an owner again and again. */
  contested(owner: Reported, what: string): void {
    const message = contestText(what);
    this.#log.warn(`a field of ${OBJECTS[owner.kind].what} is contested`, { [owner.kind]: owner.key, message });
    this.#events.record({ involved: involvedOf(owner), type: 'Warning', reason: 'FieldContested', message });
  }

  forget(key: string): void {
    this.#reporter.forget(key);
    this.#known?.set(key, []);
  }
}

/** The first problems of each reason, and how many more there are: an object may have one for each of its rules. */
function limited(problems: readonly OwnerProblem[]): readonly OwnerProblem[] {
  return [...Map.groupBy(problems, ({ reason }) => reason)].flatMap(([reason, its]) => {
    if (its.length <= MAX_OF_REASON) return its;
    const message = `and ${its.length - MAX_OF_REASON} more of this reason; correct those that are named first`;
    return [...its.slice(0, MAX_OF_REASON), { reason, message }];
  });
}

function involvedOf(owner: Reported): InvolvedObject {
  return involvedObject(OBJECTS[owner.kind].type, owner);
}
