import type { Cloud } from '../cloud/cloud.ts';
import type { ReservedIpPort } from '../cloud/reserved-ips.ts';
import { leadUntilDrained } from '../kube/election/lead-until-drained.ts';
import type { Leadership } from '../kube/election/term.ts';
import { createEventRecorder, type EventRecorder } from '../kube/event-recorder.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { ReleaseBrake } from '../kube/release-brake.ts';
import { trackRights } from '../kube/track-rights.ts';
import { evaluateLiveness, evaluateReadiness, type HealthFacts } from '../observability/health.ts';
import { sampleInformers } from '../observability/informer-sample.ts';
import type { Pacing } from '../observability/program-metrics.ts';
import { createRefusalReporter, createRightsReporter } from '../observability/report-rights.ts';
import type { Clock } from '../runtime/clock.ts';
import { type HttpEndpoints, serveHttpEndpoints } from '../runtime/http-endpoints.ts';
import type { Logger } from '../runtime/log.ts';
import { ProductGuard } from './beside/product-guard.ts';
import { CircuitBreakers } from './calls/circuit-breakers.ts';
import { CloudObserver } from './calls/cloud-observer.ts';
import { involvedConfigMap } from './config/involved-config-map.ts';
import type { IpamdConfig } from './config/options.ts';
import { DefinitionGuard } from './crds/definition-guard.ts';
import { ensureDefinitions } from './crds/install-definitions.ts';
import type { Ids } from './decide/decision.ts';
import { makeGuests } from './guests/all.ts';
import { reportStartupTaints } from './nodes/startup-taints.ts';
import { createIpamdMetrics, type IpamdMetrics, type QueueSample } from './observability/metrics.ts';
import { followMachines, type InformerDeps, type MachineFollower, openInformers } from './term/open-informers.ts';
import type { LeaderDeps, TermView } from './term/open-term.ts';
import { runTerm } from './term/run-term.ts';

/** Runtime of ipamd; each member is a port, so that ipamd also runs on a virtual clock and without a connection. */
type IpamdRuntime = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly ids: Ids;
  /** `urgent` has its own rate limit, for the lock. */
  readonly kube: KubeClient & { readonly urgent?: KubeClient };
  readonly cloud: Cloud & { readonly reservedIps: ReservedIpPort; readonly pacing?: Pacing };
  readonly release: string;
  /** Name of this replica, for people who read the lock. */
  readonly identity?: string;
  /** Metrics whose observers the clients use, if the clients are counted too. */
  readonly metrics?: IpamdMetrics;
};

/** A running ipamd. */
export type RunningIpamd = {
  /** True while it leads. */
  readonly isLeading: boolean;
  /** Returns undefined when it could serve as leader or standby, else the reason why not. */
  readiness(): string | undefined;
  readonly metrics: IpamdMetrics;
  /** Address of /metrics, /healthz and /readyz; undefined without --metrics-address. */
  readonly address: string | undefined;
  /** Resolves when it has ended by `close`; rejects with a fault of ipamd. */
  readonly ended: Promise<void>;
  /**
   * Starts nothing new, lets calls in flight end for the time of --shutdown-grace, and releases the lock. Idempotent.
   */
  close(): Promise<void>;
};

/**
 * Starts ipamd and returns as soon as its endpoints listen; it waits for the API server and the cloud in the
 * background.
 * Every replica fills its caches, whether it leads or not. So a new leader can decide at once, and two replicas cost
 * the API server one more watch for each kind.
 * @throws ConfigError when --metrics-address cannot be listened on
 */
export async function startIpamd(
  config: IpamdConfig,
  runtime: IpamdRuntime,
  guests: typeof makeGuests = makeGuests,
): Promise<RunningIpamd> {
  const ipamd = new Ipamd(config, runtime, guests);
  await ipamd.listen();
  ipamd.start();
  return ipamd;
}

/** Source of the events. */
const COMPONENT = 'tke-eni-ipamd';

class Ipamd implements RunningIpamd {
  readonly metrics: IpamdMetrics;
  readonly #config: IpamdConfig;
  readonly #runtime: IpamdRuntime;
  /** Not tracked: whoever may not even ask for a right lacks none that ipamd needs. */
  readonly #baseKube: KubeClient;
  readonly #informers;
  readonly #machines: MachineFollower;
  readonly #events: EventRecorder;
  readonly #definitions: DefinitionGuard;
  /** Undefined with --beside-product=ignore. */
  readonly #product: ProductGuard | undefined;
  readonly #leaderDeps: LeaderDeps;
  /** Aborted first: nothing new is started. */
  readonly #drain = new AbortController();
  /** Aborted last: all informers stop. */
  readonly #shutdown = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  #endpoints: HttpEndpoints | undefined;
  #term: TermView | undefined;
  #startProblem: string | undefined = 'definitions of resources are not checked yet';
  #productProblem: string | undefined;
  #lockRefusal: string | undefined;

  constructor(config: IpamdConfig, baseRuntime: IpamdRuntime, guests: typeof makeGuests) {
    const { clock, log, random, release } = baseRuntime;
    this.#config = config;
    this.#baseKube = baseRuntime.kube;
    this.metrics = baseRuntime.metrics ?? createIpamdMetrics(clock, { release, minWarmIps: config.ipMinWarmTarget });
    const involved = this.#involved();
    const { problems } = this.metrics;
    const reporting = { log, problems, involved, events: () => this.#events, role: COMPONENT };
    const kube = trackRights(baseRuntime.kube, createRightsReporter(reporting));
    this.metrics.cloudRights.listener = createRefusalReporter(reporting);
    const runtime = { ...baseRuntime, kube };
    this.#runtime = runtime;
    const observer = this.metrics.informer;
    const informerDeps: InformerDeps = { client: kube, clock, log, random, observer };
    this.#informers = openInformers(informerDeps, config);
    this.#machines = followMachines(informerDeps);
    this.#events = createEventRecorder({ client: kube, component: COMPONENT, clock, log, random });
    this.#definitions = new DefinitionGuard({
      client: kube,
      clock,
      log,
      report: (problem) => this.#onDefinitions(problem),
    });
    const namespaces = ['kube-system', config.namespace];
    const report = (problem: string | undefined): void => this.#onProduct(problem);
    this.#product =
      config.besideProduct === 'ignore'
        ? undefined
        : new ProductGuard({ client: kube, clock, log, namespaces, report });
    this.#informers.necs.subscribe((change) => {
      this.metrics.necChanged(change);
      if (change.after === undefined) this.#definitions.doubt();
    });
    this.#leaderDeps = {
      ...runtime,
      config,
      metrics: this.metrics,
      informers: this.#informers,
      informerDeps,
      machines: () => this.#machines.informer,
      definitions: this.#definitions,
      events: this.#events,
      guests: guests({ config, nodes: this.#informers.nodes, clock }),
      breakers: new CircuitBreakers(clock),
      brake: new ReleaseBrake(clock, config.nodeReleasePercent),
      cloudObserver: new CloudObserver(runtime.cloud, clock, config.clusterId),
      onTerm: (view) => {
        this.#term = view;
      },
    };
    this.#showState();
  }

  /** Returns the object on which people look for problems of ipamd's setup. */
  #involved() {
    return involvedConfigMap(this.#config);
  }

  get isLeading(): boolean {
    return this.#term !== undefined;
  }

  get address(): string | undefined {
    return this.#endpoints?.address;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  async listen(): Promise<void> {
    this.#endpoints = await serveHttpEndpoints(this.#config.metricsAddress, {
      liveness: () => evaluateLiveness(this.#healthFacts()),
      readiness: () => this.readiness(),
      registry: this.metrics.registry,
    });
    if (this.address === undefined) return;
    this.#runtime.log.info('serving metrics and health', { address: this.address });
  }

  start(): void {
    this.#run().then(this.#ended.resolve, this.#ended.reject);
    // A caller that does not wait for the end finds a fault in the log; main waits for it.
    this.#ended.promise.catch((error: unknown) => this.#runtime.log.error('ipamd ended', { error }));
  }

  readiness(): string | undefined {
    return evaluateReadiness(this.#healthFacts());
  }

  async close(): Promise<void> {
    this.#drain.abort(new Error('ipamd is ending'));
    await this.#ended.promise.catch(() => {});
  }

  async #run(): Promise<void> {
    const { clock, log, kube, release } = this.#runtime;
    log.info('ipamd starts', { release, cluster: this.#config.clusterId });
    const following: Promise<unknown>[] = [];
    try {
      await this.#product?.untilAlone(this.#drain.signal, (problem) => {
        this.#startProblem = problem;
      });
      await ensureDefinitions({ client: kube, clock, log }, this.#drain.signal, (problem) => {
        this.#startProblem = problem;
        this.metrics.problems.report('definitions', problem === undefined ? [] : [DEFINITIONS_PROBLEM]);
      });
      if (this.#drain.signal.aborted) return;
      const reporting = { kube: this.#baseKube, log, events: this.#events, involved: this.#involved() };
      following.push(reportStartupTaints(reporting, this.#config.startupTaints, this.#drain.signal));
      following.push(...Object.values(this.#informers).map((informer) => informer.start(this.#shutdown.signal)));
      following.push(this.#machines.run(this.#shutdown.signal), this.#definitions.run(this.#shutdown.signal));
      if (this.#product !== undefined) following.push(this.#product.run(this.#shutdown.signal));
      await this.#runLeader();
    } finally {
      this.#shutdown.abort(new Error('ipamd is ending'));
      await Promise.all(following);
      await this.#events.flush();
      this.#endpoints?.close();
      log.info('ipamd ended');
    }
  }

  async #runLeader(): Promise<void> {
    const { clock, log, random, kube, identity = COMPONENT } = this.#runtime;
    const config = this.#config;
    const drain = this.#drain.signal;
    if (!config.leaderElect) return await this.#leadWhileStanding(termWithoutLock(clock, this.#shutdown.signal), drain);
    const reportRefusal = (refusal: string | undefined): void => {
      this.#lockRefusal = refusal;
    };
    const election = { client: kube.urgent ?? kube, identity, clock, log, random, events: this.#events, reportRefusal };
    await leadUntilDrained(config, election, (term) => this.#leadWhileStanding(term, drain), drain);
  }

  /**
   * Leads until the term is over. When definitions are lost, or the product's ipamd appears, the work ends at once and begins
   * again when that is over, as if the term began then: calls that were in flight may still have an effect.
   */
  async #leadWhileStanding(term: Leadership, drain: AbortSignal): Promise<void> {
    const { clock } = this.#runtime;
    let startedMs = term.startedMs;
    while (!term.signal.aborted && !drain.aborted) {
      const ended = AbortSignal.any([term.signal, drain]);
      this.#leaderDeps.brake.begin(term.notes);
      await this.#definitions.untilStanding(ended).catch(() => {});
      await this.#product?.untilGone(ended).catch(() => {});
      if (ended.aborted) return;
      const { lost } = this.#definitions;
      const halts = [lost, ...(this.#product === undefined ? [] : [this.#product.appeared])];
      const signal = AbortSignal.any([term.signal, ...halts]);
      await runTerm(this.#leaderDeps, { ...term, startedMs, signal }, drain);
      if (!halts.some(({ aborted }) => aborted)) return;
      startedMs = clock.monotonicMs();
    }
  }

  /** Reports the product's own ipamd, as readiness and metric, and as an event once this one works: before, nothing is written. */
  #onProduct(problem: string | undefined): void {
    const wasThere = this.#productProblem !== undefined;
    this.#productProblem = problem;
    this.metrics.problems.report(PRODUCT_PROBLEM.kind, problem === undefined ? [] : [PRODUCT_PROBLEM]);
    if (problem === undefined || wasThere || this.#startProblem !== undefined) return;
    this.#events.record({
      involved: this.#involved(),
      type: 'Warning',
      reason: PRODUCT_PROBLEM.kind,
      message: problem,
    });
  }

  /** Reports lost definitions, as readiness, metric and event; undefined: they are served again. */
  #onDefinitions(problem: string | undefined): void {
    const wasLost = this.#startProblem !== undefined;
    this.#startProblem = problem;
    this.metrics.problems.report('definitions', problem === undefined ? [] : [DEFINITIONS_PROBLEM]);
    if (wasLost === (problem !== undefined)) return;
    const involved = this.#involved();
    const message =
      problem ?? 'all definitions of resources are served again; NodeENIConfigs are filled from the cloud';
    const isLost = problem !== undefined;
    const type = isLost ? 'Warning' : 'Normal';
    this.#events.record({ involved, type, reason: isLost ? 'DefinitionsLost' : 'DefinitionsRestored', message });
  }

  #showState(): void {
    Object.assign(this.metrics.sources, {
      pacing: this.#runtime.cloud.pacing,
      informers: () => this.#informerSamples(),
      queues: () => sampleQueues(this.#term?.queues ?? {}),
      isLeading: () => this.isLeading,
      openBreakers: () => this.#leaderDeps.breakers.openKeys(),
    } satisfies Partial<IpamdMetrics['sources']>);
  }

  #informerSamples() {
    return sampleInformers({ ...this.#informers, machines: this.#machines.informer, ...this.#term?.informers() });
  }

  #healthFacts(): HealthFacts {
    return {
      informers: sampleInformers(this.#informers),
      contact: this.metrics.contact,
      clock: this.#runtime.clock,
      startProblem: this.#productProblem ?? this.#startProblem,
      lockRefusal: this.#lockRefusal,
      restoredMs: this.#definitions.restoredMs,
    };
  }
}

const PRODUCT_PROBLEM = { kind: 'BesideProduct', name: 'tke-eni-ipamd' } as const;
const DEFINITIONS_PROBLEM = { kind: 'DefinitionsMissing', name: 'customresourcedefinitions' };

/**
 * Returns a term without a lock. No lock counts the terms, so the epoch comes from the clock; no other replica may be
 * leading.
 */
function termWithoutLock(clock: Clock, signal: AbortSignal): Leadership {
  const epoch = Math.floor(clock.nowMs() / MS_PER_S);
  return { epoch, startedMs: clock.monotonicMs(), leaseMs: 0, signal };
}

const MS_PER_S = 1000;

function sampleQueues(queues: TermView['queues']): readonly QueueSample[] {
  return Object.entries(queues).map(([queue, { size: waiting, runningCount: running }]) => ({
    queue,
    waiting,
    running,
  }));
}
