import type { ElectionSettings } from '../kube/election/election-settings.ts';
import { fenceWrites } from '../kube/election/fence-writes.ts';
import { leadUntilDrained } from '../kube/election/lead-until-drained.ts';
import type { Leadership } from '../kube/election/term.ts';
import { createEventRecorder, type EventRecorder } from '../kube/event-recorder.ts';
import { type Informer, openInformer } from '../kube/informer.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { ReleaseBrake } from '../kube/release-brake.ts';
import { NODES } from '../kube/resource-types.ts';
import { trackRights } from '../kube/track-rights.ts';
import { evaluateLiveness, evaluateReadiness, type HealthFacts } from '../observability/health.ts';
import { sampleInformers } from '../observability/informer-sample.ts';
import type { Pacing } from '../observability/program-metrics.ts';
import { createRefusalReporter, createRightsReporter } from '../observability/report-rights.ts';
import type { Clock } from '../runtime/clock.ts';
import { type HttpEndpoints, serveHttpEndpoints } from '../runtime/http-endpoints.ts';
import type { Logger } from '../runtime/log.ts';
import { CONTROLLER_NAMES, type ControllerName } from './config/controllers-value.ts';
import type { CcmConfig } from './config/options.ts';
import { type CcmNode, decodeCcmNode } from './controller/ccm-node.ts';
import type { CcmCloud, ControllerDeps } from './controller/controller-deps.ts';
import { LOCK_KINDS, lockObjectOf } from './controller/lock-object.ts';
import { DescribedInstances } from './nodes/described-instances.ts';
import { type CcmMetrics, type ControllerState, createCcmMetrics } from './observability/metrics.ts';
import { ControllerRights } from './term/controller-rights.ts';
import { CONTROLLERS, type Controller } from './term/controllers.ts';
import { type RunState, runControllers } from './term/run-controllers.ts';

/**
 * How calls to the cloud are in turn. Their owners are namespaces: every other call is that of the owner that was served
 * longest ago, so that the urgent calls of one do not stop all others.
 */
export const CLOUD_TURNS = { blindEvery: 2 } as const;

/** Runtime of the process; each member is a port, so that it also runs on a virtual clock and without a connection. */
type CcmRuntime = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** `urgent` has its own rate limit, for the lock. */
  readonly kube: KubeClient & { readonly urgent?: KubeClient };
  readonly cloud: CcmCloud & { readonly pacing?: Pacing };
  readonly release: string;
  /** Name of this replica, for people who read the lock. */
  readonly identity?: string;
  /** Metrics whose observers the clients use, if the clients are counted too. */
  readonly metrics?: CcmMetrics;
  /** Default: those of this program. */
  readonly controllers?: readonly Controller[];
};

/** A running cloud controller manager. */
export type RunningCcm = {
  /** True while it leads. */
  readonly isLeading: boolean;
  /** Returns undefined when it could work as leader or standby, else the reason why not. */
  readiness(): string | undefined;
  stateOf(name: ControllerName): ControllerState;
  readonly metrics: CcmMetrics;
  /** Address of /metrics, /healthz and /readyz; undefined without --metrics-address. */
  readonly address: string | undefined;
  /** Resolves when it has ended by `close`; rejects with a fault of a controller. */
  readonly ended: Promise<void>;
  /** Ends the controllers and releases the lock. Idempotent. */
  close(): Promise<void>;
};

/**
 * Starts the process and returns as soon as its endpoints listen; it waits for the API server in the background. Every
 * replica follows the Nodes, whether it leads or not, so that a new leader can decide at once.
 * @throws ConfigError when --metrics-address cannot be listened on
 */
export async function startCcm(config: CcmConfig, runtime: CcmRuntime): Promise<RunningCcm> {
  const ccm = new Ccm(config, runtime);
  await ccm.listen();
  ccm.start();
  return ccm;
}

/** Source of the events. */
const COMPONENT = 'tke-cloud-controller-manager';

class Ccm implements RunningCcm {
  readonly metrics: CcmMetrics;
  readonly #config: CcmConfig;
  readonly #runtime: CcmRuntime;
  readonly #kube: KubeClient;
  readonly #nodes: Informer<CcmNode>;
  readonly #events: EventRecorder;
  readonly #controllers: readonly Controller[];
  readonly #rights: ControllerRights;
  readonly #brake: ReleaseBrake;
  readonly #running = new Map<ControllerName, RunState>();
  readonly #stop = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  #endpoints: HttpEndpoints | undefined;
  #isLeading = false;
  #lockRefusal: string | undefined;

  constructor(config: CcmConfig, runtime: CcmRuntime) {
    const { clock, log, random, release, cloud } = runtime;
    this.#config = config;
    this.#runtime = runtime;
    this.metrics = runtime.metrics ?? createCcmMetrics(clock, { release });
    const { problems, cloudRights, informer: observer } = this.metrics;
    const reporting = { log, problems, involved: lockObjectOf(config), events: () => this.#events, role: COMPONENT };
    this.#kube = trackRights(runtime.kube, createRightsReporter(reporting));
    cloudRights.listener = createRefusalReporter(reporting);
    this.#events = createEventRecorder({ client: this.#kube, component: COMPONENT, clock, log, random });
    this.#nodes = openInformer({
      client: this.#kube,
      type: NODES,
      decode: decodeCcmNode,
      clock,
      log,
      random,
      observer,
    });
    this.#brake = new ReleaseBrake(clock, config.nodeReleasePercent);
    const isOn = ({ name, isWanted }: Controller): boolean =>
      config.controllers.has(name) && isWanted?.(config) !== false;
    this.#controllers = (runtime.controllers ?? CONTROLLERS).filter(isOn);
    const report = (controller: ControllerName, missing: readonly string[]) => this.#onRights(controller, missing);
    this.#rights = new ControllerRights({ kube: this.#kube, clock, log, report }, this.#controllers);
    Object.assign(this.metrics.sources, {
      pacing: cloud.pacing,
      isLeading: () => this.#isLeading,
      informers: () => sampleInformers({ nodes: this.#nodes }),
      controllers: () => CONTROLLER_NAMES.map((name) => [name, this.stateOf(name)] as const),
    } satisfies Partial<CcmMetrics['sources']>);
  }

  get isLeading(): boolean {
    return this.#isLeading;
  }

  get address(): string | undefined {
    return this.#endpoints?.address;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  stateOf(name: ControllerName): ControllerState {
    if (!this.#controllers.some((one) => one.name === name)) return 'off';
    const state = this.#running.get(name);
    if (state !== undefined) return state;
    return (this.#rights.missingOf(name)?.length ?? 0) > 0 ? 'noRights' : 'standby';
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
    this.#ended.promise.catch((error: unknown) => this.#runtime.log.error('ended', { error }));
  }

  readiness(): string | undefined {
    return evaluateReadiness(this.#healthFacts());
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the process is ending'));
    await this.#ended.promise.catch(() => {});
  }

  async #run(): Promise<void> {
    const { log, release } = this.#runtime;
    const names = this.#controllers.map(({ name }) => name);
    log.info('starting', { release, controllers: names });
    const shutdown = new AbortController();
    const following = [this.#nodes.start(shutdown.signal), this.#rights.run(shutdown.signal)];
    try {
      await this.#elect();
    } finally {
      shutdown.abort(new Error('the process is ending'));
      await Promise.all(following);
      await this.#events.flush();
      this.#endpoints?.close();
      log.info('ended');
    }
  }

  async #elect(): Promise<void> {
    const { clock, log, random, kube, identity = COMPONENT } = this.#runtime;
    const stop = this.#stop.signal;
    if (!this.#config.leaderElect) return await this.#lead({ signal: stop });
    const reportRefusal = (refusal: string | undefined): void => {
      this.#lockRefusal = refusal;
    };
    const deps = { client: kube.urgent ?? kube, identity, clock, log, random, events: this.#events, reportRefusal };
    const lead = (term: Leadership): Promise<void> =>
      this.#lead({ ...term, signal: AbortSignal.any([term.signal, stop]) });
    await leadUntilDrained(electionSettingsOf(this.#config), deps, lead, stop);
  }

  async #lead(term: Pick<Leadership, 'signal' | 'notes' | 'isHeld'>): Promise<void> {
    this.#isLeading = true;
    this.#brake.begin(term.notes);
    try {
      const onState = (name: ControllerName, state: RunState | undefined): void => {
        if (state === undefined) this.#running.delete(name);
        else this.#running.set(name, state);
      };
      const running = { controllers: this.#controllers, rights: this.#rights, onState };
      const { clock, log, cloud } = this.#runtime;
      const instances = new DescribedInstances({
        ...{ config: this.#config, cloud, nodes: this.#nodes, clock, log },
        ...(term.notes === undefined ? {} : { notes: term.notes }),
        onVpcFault: (fault) => this.#onVpcFault(fault),
      });
      const deps = { ...this.#controllerDeps(term), instances };
      const ended = new AbortController();
      const describing = instances.run(AbortSignal.any([term.signal, ended.signal]));
      try {
        await runControllers(deps, running, term.signal);
      } finally {
        ended.abort(new Error('the term has ended'));
        await describing;
      }
    } finally {
      this.metrics.clearTerm();
      this.#isLeading = false;
    }
  }

  #controllerDeps(term: Pick<Leadership, 'isHeld'>): Omit<ControllerDeps, 'instances'> {
    const { clock, log, random, cloud } = this.#runtime;
    const { metrics } = this;
    const kube = fenceWrites(this.#kube, term);
    const brake = this.#brake;
    return {
      config: this.#config,
      kube,
      cloud,
      nodes: this.#nodes,
      events: this.#events,
      brake,
      metrics,
      clock,
      log,
      random,
    };
  }

  /** Reports a controller that does not run for want of rights, as a log line, a metric and an event. */
  #onRights(controller: ControllerName, missing: readonly string[]): void {
    const { log } = this.#runtime;
    const problems = missing.map((name) => ({ kind: 'Forbidden', name: `${controller}: ${name}` }));
    this.metrics.problems.report(`controller/${controller}`, problems);
    if (missing.length === 0) {
      log.info('a controller has its rights now', { controller });
      return;
    }
    const message = `${controller} does not run: ${COMPONENT} may not ${missing.join(', ')}; grant it to its ClusterRole, or leave the controller out of --controllers`;
    log.error('a controller does not run for want of rights', { controller, missing });
    const involved = lockObjectOf(this.#config);
    this.#events.record({ involved, type: 'Warning', reason: 'Forbidden', message });
  }

  /** Reports a --vpc-id that the instances contradict, as a log line, a metric and an event. */
  #onVpcFault(message: string | undefined): void {
    const { log } = this.#runtime;
    this.metrics.problems.reportOfTerm(
      'vpc',
      message === undefined ? [] : [{ kind: 'ConfigInvalid', name: '--vpc-id' }],
    );
    if (message === undefined) {
      log.info('nothing contradicts --vpc-id any more');
      return;
    }
    log.error('--vpc-id contradicts the instances of Nodes; nothing is removed for that', { detail: message });
    const involved = lockObjectOf(this.#config);
    this.#events.record({ involved, type: 'Warning', reason: 'ConfigInvalid', message });
  }

  #healthFacts(): HealthFacts {
    const { clock } = this.#runtime;
    const informers = sampleInformers({ nodes: this.#nodes });
    const { contact } = this.metrics;
    return { informers, contact, clock, startProblem: undefined, lockRefusal: this.#lockRefusal };
  }
}

/** Upstream has one period for renewals and for retries. */
function electionSettingsOf(config: CcmConfig): ElectionSettings {
  const { leaderElectRetryMs: leaderElectRenewMs, leaderElectLock } = config;
  return { ...config, leaderElectRenewMs, leaderElectLock: LOCK_KINDS[leaderElectLock] };
}
