import type { PodFollower } from '../backends/follow-pods.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';

/** So long a leader waits for Pods before it begins without them. */
const MAX_READING_MS = 10_000;

/**
 * Whom a new leader looks at first: owners of load balancers behind which Pods end. Until the cloud has described the instances
 * of Nodes it looks at no others, and only the targets of these follow, which are Pods that need no instance.
 */
export class StartOrder {
  readonly #deps: Pick<ControllerDeps, 'instances' | 'nodes'>;
  readonly #pods: Pick<PodFollower, 'untilRead' | 'podsOf'>;
  #isStarting = true;

  constructor(deps: Pick<ControllerDeps, 'instances' | 'nodes'>, pods: Pick<PodFollower, 'untilRead' | 'podsOf'>) {
    this.#deps = deps;
    this.#pods = pods;
  }

  /** Whether instances are not described yet: all but targets stays as it is. */
  get isStarting(): boolean {
    return this.#isStarting;
  }

  /**
   * Calls `queueAll` when Pods and Nodes were read, or Pods were not for 10 s, and again when instances were asked for; resolves
   * then. @throws the reason of `signal`
   */
  async run(queueAll: () => void, signal: AbortSignal): Promise<void> {
    const { instances, nodes } = this.#deps;
    await Promise.all([this.#pods.untilRead(MAX_READING_MS, signal), nodes.synced(signal)]);
    queueAll();
    if (!this.#isStarting) return;
    await instances.ready(signal);
    signal.throwIfAborted();
    this.#isStarting = false;
    queueAll();
  }

  /** Whether an owner is looked at before others: a Pod behind its Services ends. */
  isFirst(services: readonly string[]): boolean {
    return services.some((service) => this.#pods.podsOf(service).some(({ isLeaving }) => isLeaving));
  }

  /** Whether an owner may be looked at now. @param services those whose Pods are its targets; none: Nodes are */
  mayBegin(services: readonly string[]): boolean {
    if (!this.#isStarting) return true;
    const needsInstance = services.some((service) =>
      this.#pods.podsOf(service).some(({ network }) => network === 'host'),
    );
    return !needsInstance && this.isFirst(services);
  }
}
