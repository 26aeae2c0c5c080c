import type { ServerCertificates } from '../kube/certificates/server-certificates.ts';
import { leadUntilDrained } from '../kube/election/lead-until-drained.ts';
import { describeBlindness, findSilentWatches, SILENT_MS } from '../kube/find-silent-watches.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { describeMissingRight, trackRights } from '../kube/track-rights.ts';
import { ChangeSignal } from '../runtime/change-signal.ts';
import type { Clock } from '../runtime/clock.ts';
import { type HttpEndpoints, serveHttpEndpoints } from '../runtime/http-endpoints.ts';
import type { Logger } from '../runtime/log.ts';
import type { TlsFollower, TlsPair } from '../runtime/tls-follower.ts';
import type { SchedulerConfig } from './config/options.ts';
import { type Followed, followCluster } from './follow-cluster.ts';
import { findLeaderAddress, type LeaderLookupDeps } from './forward/find-leader-address.ts';
import { PeerClient } from './forward/peer-client.ts';
import { VerbRouter } from './forward/verb-router.ts';
import {
  type ExtenderServer,
  type ExtenderServerOptions,
  serveExtender,
  type VerbHandler,
} from './http/serve-extender.ts';
import { SchedulerIndex } from './index/scheduler-index.ts';
import { createSchedulerMetrics, type SchedulerMetrics } from './observability/metrics.ts';
import { openCertificates } from './open-certificates.ts';
import { bind } from './verbs/bind.ts';
import { filter } from './verbs/filter.ts';
import { preempt } from './verbs/preempt.ts';
import { prioritize } from './verbs/prioritize.ts';
import { RecentPods } from './verbs/recent-pods.ts';

/** The dependencies of the scheduler extender; each is a port. */
type SchedulerRuntime = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** `urgent` has a call rate of its own, for the lock. */
  readonly kube: KubeClient & { readonly urgent?: KubeClient };
  readonly release: string;
  /** The identity in the lock, for people who read it. */
  readonly identity?: string;
  /** Metrics that the caller created, because its API client reports to them too; absent: created here. */
  readonly metrics?: SchedulerMetrics;
  /** Ends the wait for the first certificate. */
  readonly signal?: AbortSignal;
  /** Who calls this replica and how it calls others; absent: HTTP, with certificates where they are configured. */
  readonly network?: SchedulerNetwork;
};

/** A network on which the replicas know each other without certificates, so that each forwards. */
type SchedulerNetwork = {
  /** Serves the verbs. */
  readonly serve: (options: ExtenderServerOptions) => Promise<ExtenderServer>;
  /** Posts a request to another replica, as `PeerClient` does. */
  readonly post: PeerClient['post'];
};

/** A running scheduler extender. */
export type RunningScheduler = {
  /** The address that kube-scheduler calls. */
  readonly address: string;
  /** The address of /metrics, /healthz and /readyz; undefined without --metrics-address. */
  readonly metricsAddress: string | undefined;
  /**
   * Returns undefined while requests are answered, by this replica or by the leader that it forwards them to, else the
   * reason why not.
   */
  readiness(): string | undefined;
  /** True while this replica leads and answers requests itself. */
  readonly isLeading: boolean;
  readonly index: SchedulerIndex;
  /** Resolves after `close` has finished; rejects with an internal error. */
  readonly ended: Promise<void>;
  /**
   * Waits up to --shutdown-grace for the running requests, releases the lock, and forwards later requests for a moment.
   * Idempotent.
   */
  close(): Promise<void>;
};

const NAME = 'tke-eni-ip-scheduler';

/**
 * Starts the scheduler extender and returns as soon as it listens. Every replica keeps its index up to date; only the
 * leader answers, and the others forward to it. Without certificates they refuse instead, as they cannot prove to the
 * leader who they are. A replica joins the election after its caches are synced, so a new leader can answer at once.
 * @throws ConfigError when an address cannot be listened on, or the certificates cannot be used
 */
export async function startScheduler(config: SchedulerConfig, runtime: SchedulerRuntime): Promise<RunningScheduler> {
  const scheduler = new Scheduler(config, runtime);
  await scheduler.listen();
  scheduler.start();
  return scheduler;
}

class Scheduler implements RunningScheduler {
  readonly index: SchedulerIndex;
  readonly #config: SchedulerConfig;
  readonly #runtime: SchedulerRuntime;
  readonly #metrics: SchedulerMetrics;
  readonly #changes: ChangeSignal;
  readonly #recent = new RecentPods();
  readonly #followed: Followed;
  readonly #peers = new PeerClient(() => this.#pairs());
  readonly #router: VerbRouter;
  /** Aborted first: this replica answers no new requests itself. */
  readonly #drain = new AbortController();
  /** Aborted last: all informers stop. */
  readonly #stop = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  #server: ExtenderServer | undefined;
  #endpoints: HttpEndpoints | undefined;
  #opened: ServerCertificates | undefined;
  #certificates: TlsPair | undefined;
  #tls: TlsFollower | undefined;
  /** Aborted when another replica may lead; undefined while this replica does not lead. */
  #term: AbortSignal | undefined;

  constructor(config: SchedulerConfig, runtime: SchedulerRuntime) {
    const { clock, log, release } = runtime;
    const reportRight: Parameters<typeof trackRights>[1] = (right, error) => {
      if (error === undefined) log.info('a right is there again', { right });
      else log.error('a right is missing', { right, detail: describeMissingRight(right, error, NAME) });
    };
    this.#config = config;
    this.#runtime = { ...runtime, kube: trackRights(runtime.kube, reportRight) };
    this.#metrics = runtime.metrics ?? createSchedulerMetrics(clock, { release });
    this.#changes = new ChangeSignal(clock);
    this.index = new SchedulerIndex(config.reservationTtlMs);
    this.#followed = followCluster(
      { ...this.#runtime, client: this.#runtime.kube, namespace: config.namespace },
      this.index,
      this.#changes,
    );
    this.#router = new VerbRouter({
      ...{ verbs: this.#verbs(), clock, log },
      isLeading: () => this.isLeading,
      findLeader: (signal) => findLeaderAddress(this.#lookup(), signal),
      post: (...args) => (runtime.network ?? this.#peers).post(...args),
    });
    this.#metrics.show({
      sizes: () => this.index.sizes,
      isLeading: () => this.#term !== undefined,
      certificate: () => {
        const expiresMs = (this.#tls?.pair ?? this.#certificates)?.expiresMs;
        return expiresMs === undefined ? undefined : { expiresMs, hasProblem: this.#tls?.problem !== undefined };
      },
    });
  }

  get address(): string {
    return this.#server?.address ?? '';
  }

  get metricsAddress(): string | undefined {
    return this.#endpoints?.address;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get isLeading(): boolean {
    return this.#term !== undefined && !this.#drain.signal.aborted;
  }

  readiness(): string | undefined {
    const waiting = Object.entries(this.#followed).filter(([, { isSynced }]) => !isSynced);
    if (waiting.length > 0) return `not read yet: ${waiting.map(([name]) => name).join(', ')}`;
    return this.#refusal();
  }

  /** Returns which watch hangs; undefined while none does. */
  #liveness(): string | undefined {
    const silent = findSilentWatches(Object.entries(this.#followed), this.#metrics.contact, this.#runtime.clock);
    if (silent.length === 0) return undefined;
    const minutes = SILENT_MS / 60_000;
    return `the API server answers, but the watch of ${silent.join(', ')} has received nothing for ${minutes} minutes`;
  }

  /** Returns why requests are refused; undefined while they are answered here or forwarded. */
  #refusal(): string | undefined {
    if (this.#canForward) return undefined;
    if (this.#drain.signal.aborted) return 'this replica is shutting down';
    return this.#term === undefined ? 'another replica leads; this one stands by' : undefined;
  }

  get #canForward(): boolean {
    const isTrusted = this.#runtime.network !== undefined || this.#certificates?.ca !== undefined;
    return this.#config.leaderElect && isTrusted;
  }

  async listen(): Promise<void> {
    const { clock, log, network } = this.#runtime;
    const { listenAddress, bodyLimitMib, metricsAddress, clientAllowedNames } = this.#config;
    this.#opened = await openCertificates(this.#config, this.#runtime, this.#runtime.signal ?? this.#stop.signal);
    this.#certificates = this.#opened?.pair;
    this.#server = await (network?.serve ?? serveExtender)({
      address: listenAddress,
      ...(this.#certificates === undefined ? {} : { certificates: this.#certificates }),
      allowedNames: clientAllowedNames,
      verbs: this.#router.handlers,
      readiness: () => (this.#canForward ? undefined : this.readiness()),
      bodyLimitBytes: bodyLimitMib * MIB,
      clock,
      log,
      onAnswer: (verb, outcome, ms) => {
        this.#metrics.requests.inc({ verb, outcome });
        this.#metrics.requestSeconds.observeMs({ verb }, ms);
      },
    });
    log.info('serving kube-scheduler', { address: this.#server.address, isTls: this.#certificates !== undefined });
    if (this.#certificates?.ca === undefined)
      log.warn('every process of this node may bind Pods', { flag: '--allow-anonymous-loopback' });
    this.#endpoints = await serveHttpEndpoints(metricsAddress, {
      liveness: () => this.#liveness(),
      readiness: () => this.readiness() ?? describeBlindness(Object.entries(this.#followed), clock),
      registry: this.#metrics.registry,
    });
  }

  start(): void {
    this.#run().then(this.#ended.resolve, this.#ended.reject);
    // The log reports a fault to callers that do not await `ended`; main awaits it.
    this.#ended.promise.catch((error: unknown) => this.#runtime.log.error('the scheduler extender ended', { error }));
  }

  async close(): Promise<void> {
    this.#drain.abort(new Error('the scheduler extender is ending'));
    this.#server?.endConnections();
    await this.#ended.promise.catch(() => {});
  }

  #verbs(): Readonly<Record<string, VerbHandler>> {
    const { clock, kube, log } = this.#runtime;
    const deps = { index: this.index, clock };
    const waiting = { ...deps, changes: this.#changes, recent: this.#recent, waitMs: this.#config.filterWaitMs };
    const binding = { ...deps, client: kube, recent: this.#recent, log };
    return {
      filter: (body, signal) => filter(waiting, body, signal),
      prioritize: (body) => prioritize(deps, body),
      preempt: (body) => preempt(deps, body),
      // The client's signal is not passed: a binding that has begun is finished even if the client disconnects.
      bind: (body) => bind(binding, body, this.#term ?? AbortSignal.abort(new Error('another replica leads'))),
    };
  }

  async #run(): Promise<void> {
    const { clock, log, release } = this.#runtime;
    log.info('the scheduler extender starts', { release });
    const following = Object.values(this.#followed).map((informer) => informer.start(this.#stop.signal));
    if (this.#opened !== undefined && this.#server !== undefined) {
      this.#tls = this.#opened.follow(this.#server);
      following.push(this.#tls.run(this.#stop.signal));
    }
    try {
      const synced = Promise.all(Object.values(this.#followed).map((informer) => informer.synced(this.#drain.signal)));
      await synced.catch((error: unknown) => {
        if (!this.#drain.signal.aborted) throw error;
      });
      if (!this.#drain.signal.aborted) await this.#runElection();
      // kube-scheduler may not have noticed yet that this replica ends.
      if (this.#canForward && this.#drain.signal.aborted) await clock.sleep(LINGER_MS);
    } finally {
      await this.#server?.close(this.#drain.signal.aborted ? Math.min(this.#config.shutdownGraceMs, LAST_MS) : 0);
      this.#peers.close();
      this.#stop.abort(new Error('the scheduler extender is ending'));
      await Promise.all(following);
      this.#endpoints?.close();
      log.info('the scheduler extender ended');
    }
  }

  async #runElection(): Promise<void> {
    const { clock, log, random, kube, identity = NAME } = this.#runtime;
    const config = this.#config;
    const drain = this.#drain.signal;
    if (!config.leaderElect) return await this.#lead(this.#stop.signal);
    const electionDeps = { client: kube.urgent ?? kube, identity, clock, log, random };
    await leadUntilDrained(config, electionDeps, (term) => this.#lead(term.signal), drain);
  }

  /** Answers until another replica may lead, or until the shutdown begins and the running requests have ended. */
  async #lead(term: AbortSignal): Promise<void> {
    const { log } = this.#runtime;
    const drain = this.#drain.signal;
    this.#term = term;
    log.info('leading', { ...this.index.sizes });
    try {
      await anyAborted([term, drain]);
      if (!term.aborted) await this.#finishRunning();
    } finally {
      this.#term = undefined;
      log.info('leadership ended');
    }
  }

  /** Waits, bounded, for the requests that this replica answers itself: the next leader must not begin before. */
  async #finishRunning(): Promise<void> {
    const timer = new AbortController();
    const graceMs = this.#config.shutdownGraceMs;
    await Promise.race([this.#router.idle(), this.#runtime.clock.sleep(graceMs, timer.signal).catch(() => {})]);
    timer.abort();
  }

  /** Certificates of replicas: that in use, and the one before. */
  #pairs(): readonly TlsPair[] {
    return [this.#tls?.pair ?? this.#certificates, this.#tls?.former].filter((pair) => pair !== undefined);
  }

  #lookup(): LeaderLookupDeps {
    const { kube: client, clock } = this.#runtime;
    const { leaderElectLock: kind, namespace, leaderElectName: name } = this.#config;
    return { client, clock, lock: { kind, namespace, name }, port: this.address.split(':').at(-1) ?? '' };
  }
}

/** How long a replica that ends forwards new requests: until Service and kube-proxy lead elsewhere. */
const LINGER_MS = 2_000;
/** How long forwarded requests may take after that. */
const LAST_MS = 5_000;
const MIB = 1024 * 1024;

function anyAborted(signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const any = AbortSignal.any([...signals]);
    if (any.aborted) resolve();
    else any.addEventListener('abort', () => resolve(), { once: true });
  });
}
