import { openCertificateKeeper } from '../kube/certificates/keep-certificates.ts';
import {
  certificatesInFiles,
  certificatesOfReplicas,
  type ServerCertificates,
} from '../kube/certificates/server-certificates.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { ClientAdmission } from '../runtime/client-admission.ts';
import type { Clock } from '../runtime/clock.ts';
import { type HttpEndpoints, serveHttpEndpoints } from '../runtime/http-endpoints.ts';
import type { HttpServer } from '../runtime/http-server.ts';
import { listenOn } from '../runtime/listen-on.ts';
import type { Logger } from '../runtime/log.ts';
import type { TlsFollower } from '../runtime/tls-follower.ts';
import type { FollowedObjects } from './follow-objects.ts';
import { createWebhookMetrics, type WebhookMetrics } from './metrics.ts';
import { openReviews } from './open-reviews.ts';
import { WEBHOOK_PROGRAM, type WebhookConfig } from './options.ts';
import { publishAuthorities } from './publish-authorities.ts';
import { createReviewServer } from './serve-reviews.ts';

/** The dependencies of the webhook. */
type WebhookRuntime = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** For StaticIPConfigs, Services and certificates; undefined: none are read, and certificates are files. */
  readonly kube: KubeClient | undefined;
  readonly release: string;
  readonly metrics?: WebhookMetrics;
  /** Ends the wait for the first certificate. */
  readonly signal?: AbortSignal;
};

/** A running webhook. */
export type RunningWebhook = {
  /** The address that the API server calls, `host:port`. */
  readonly address: string;
  /** The address of metrics and health; undefined without --metrics-address. */
  readonly metricsAddress: string | undefined;
  /** Returns undefined when the webhook can serve, else the reason why not. */
  readiness(): string | undefined;
  /** Looks for another certificate now. */
  checkCertificate(): Promise<void>;
  /** Returns the certificate that new connections get, PEM. */
  servedCertificate(): string;
  /**
   * Reports not ready, continues to serve for --shutdown-delay, finishes the running requests, and ends. Idempotent.
   */
  close(): Promise<void>;
};

/**
 * Starts the webhook; it serves when this returns.
 * @throws ConfigError when the certificate cannot be read or an address cannot be listened on
 */
export async function startWebhook(config: WebhookConfig, runtime: WebhookRuntime): Promise<RunningWebhook> {
  const { clock, log, release, metrics = createWebhookMetrics({ release }) } = runtime;
  const certificates = await openCertificates(config, runtime);
  const { pair } = certificates;
  const clients = new ClientAdmission(config.clientAllowedNames);
  const { answers, rules, services, ingresses } = openReviews(config, runtime);
  const server = createReviewServer(pair, { answers, metrics, clock, log, clients });
  const tls = certificates.follow(clients.follow(server.server, pair));
  metrics.show(() => ({
    expiresMs: tls.pair.expiresMs,
    reloads: tls.reloads,
    hasCertificateProblem: tls.problem !== undefined,
    staticIpConfigs: rules.size(),
    isFollowing: rules.isFollowing(),
    ...(config.readinessGates && {
      directServices: [...services.values()].filter(({ isDirect }) => isDirect).length,
      isFollowingServices: services.isFollowing(),
      directIngresses: ingresses.size(),
      isFollowingIngresses: ingresses.isFollowing(),
    }),
  }));
  const webhook = new Webhook({ config, clock, log, server, tls, followed: [rules, services, ingresses], metrics });
  await webhook.start();
  return webhook;
}

/** The MutatingWebhookConfiguration, the Service and the subject of the certificate have the program's name. */
const NAME = WEBHOOK_PROGRAM.name;

/** Reads certificates from files, or has the replicas make them. @throws ConfigError when files cannot be used */
async function openCertificates(config: WebhookConfig, runtime: WebhookRuntime): Promise<ServerCertificates> {
  const { clock, log, random, kube } = runtime;
  const { tlsSecret, tlsNames, ipamdNamespace: namespace } = config;
  if (tlsSecret === '' || kube === undefined) return certificatesInFiles(config, runtime);
  const wanted = { program: NAME, names: [`${NAME}.${namespace}.svc`, ...tlsNames] };
  const keeper = openCertificateKeeper({ kube, secret: { namespace, name: tlsSecret }, wanted, clock, log });
  const publish = (authorities: string) => publishAuthorities(kube, NAME, authorities);
  const followed = { keeper, publish, asksClients: false, clock, log, random };
  return await certificatesOfReplicas(followed, runtime.signal ?? new AbortController().signal);
}

type WebhookComponents = {
  readonly config: WebhookConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly server: HttpServer;
  readonly tls: TlsFollower;
  readonly followed: readonly Pick<FollowedObjects<unknown>, 'run' | 'problem'>[];
  readonly metrics: WebhookMetrics;
};

/** Time limit for running requests after the shutdown delay. */
const DRAIN_MS = 5_000;

class Webhook implements RunningWebhook {
  address = '';
  readonly #components: WebhookComponents;
  readonly #stop = new AbortController();
  readonly #following: Promise<void>[] = [];
  #endpoints: HttpEndpoints | undefined;
  #ending: Promise<void> | undefined;

  constructor(components: WebhookComponents) {
    this.#components = components;
  }

  get metricsAddress(): string | undefined {
    return this.#endpoints?.address;
  }

  async start(): Promise<void> {
    const { config, log, server, tls, followed, metrics } = this.#components;
    this.address = await listenOn(server.server, config.listenAddress, '--listen-address');
    if (config.clientCaFile === '')
      log.info('clients are not checked: everybody who reaches the port is answered', { flag: '--client-ca-file' });
    const { signal } = this.#stop;
    this.#following.push(tls.run(signal), ...followed.map((objects) => objects.run(signal)));
    log.info('serving reviews', { address: this.address, defaultNetwork: config.defaultNetwork });
    try {
      this.#endpoints = await serveHttpEndpoints(config.metricsAddress, {
        // An answer proves that the event loop runs; no other component can get stuck.
        liveness: () => undefined,
        readiness: () => this.readiness(),
        registry: metrics.registry,
      });
    } catch (error) {
      server.closeNow();
      this.#stop.abort();
      throw error;
    }
  }

  readiness(): string | undefined {
    if (this.#ending !== undefined) return 'it is shutting down';
    const { tls, clock, followed } = this.#components;
    if (tls.pair.expiresMs <= clock.nowMs()) return 'the certificate has expired';
    return followed.map((objects) => objects.problem()).find((problem) => problem !== undefined);
  }

  checkCertificate(): Promise<void> {
    return this.#components.tls.check();
  }

  servedCertificate(): string {
    return this.#components.tls.pair.cert;
  }

  close(): Promise<void> {
    this.#ending ??= this.#close();
    return this.#ending;
  }

  async #close(): Promise<void> {
    const { config, clock, log, server } = this.#components;
    await clock.sleep(config.shutdownDelayMs);
    await server.close(DRAIN_MS, clock);
    this.#stop.abort(new Error('the webhook is ending'));
    await Promise.all(this.#following);
    this.#endpoints?.close();
    log.info('ended');
  }
}
