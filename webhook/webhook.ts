import type { StaticIpRule } from '../crd/select-static-ip-config.ts';
import { STATIC_IP_CONFIG_KIND, staticIpConfig } from '../crd/static-ip-config.ts';
import { type Informer, openInformer } from '../kube/informer.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { isKubeError } from '../kube/kube-error.ts';
import { resourceTypeOf } from '../kube/resource-types.ts';
import { ClientAdmission } from '../runtime/client-admission.ts';
import type { Clock } from '../runtime/clock.ts';
import { decodeOrThrow } from '../runtime/decode.ts';
import { type HttpEndpoints, serveHttpEndpoints } from '../runtime/http-endpoints.ts';
import type { HttpServer } from '../runtime/http-server.ts';
import { listenOn } from '../runtime/listen-on.ts';
import type { Logger } from '../runtime/log.ts';
import { followTlsFiles, readTlsFiles, type TlsFollower } from '../runtime/tls-files.ts';
import { answerReview } from './answer-review.ts';
import { createWebhookMetrics, type WebhookMetrics } from './metrics.ts';
import type { WebhookConfig } from './options.ts';
import { createReviewServer } from './serve-reviews.ts';

/** The dependencies of the webhook. */
type WebhookRuntime = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** For StaticIPConfigs; undefined: none are read. */
  readonly kube: KubeClient | undefined;
  readonly release: string;
  readonly metrics?: WebhookMetrics;
};

/** A running webhook. */
export type RunningWebhook = {
  /** The address that the API server calls, `host:port`. */
  readonly address: string;
  /** The address of metrics and health; undefined without --metrics-address. */
  readonly metricsAddress: string | undefined;
  /** Returns undefined when the webhook can serve, else the reason why not. */
  readiness(): string | undefined;
  /** Checks the certificate files now. */
  checkCertificate(): void;
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
  const { clientCaFile, clientAllowedNames } = config;
  const authorities = clientCaFile === '' ? {} : { clientCaFile };
  const files = { certFile: config.tlsCertFile, keyFile: config.tlsPrivateKeyFile, ...authorities };
  const pair = readTlsFiles(files);
  const clients = new ClientAdmission(clientAllowedNames);
  const rules = followRules(config, runtime);
  const context = { defaultNetwork: config.defaultNetwork, clusterNamespace: config.ipamdNamespace };
  const answer = (sent: unknown) => answerReview(sent, { ...context, rules: rules.values() });
  const server = createReviewServer(pair, { answer, metrics, clock, log, clients });
  const tls = followTlsFiles({ server: clients.follow(server.server, pair), files, pair, clock, log });
  metrics.show(() => ({
    expiresMs: tls.pair.expiresMs,
    reloads: tls.reloads,
    hasCertificateProblem: tls.problem !== undefined,
    staticIpConfigs: rules.size(),
    isFollowing: rules.isFollowing(),
  }));
  const webhook = new Webhook({ config, clock, log, server, tls, rules, metrics });
  await webhook.start();
  return webhook;
}

/** The StaticIPConfigs that the API server allows to read. */
type Rules = {
  values(): Iterable<StaticIpRule>;
  size(): number;
  isFollowing(): boolean;
  /** Returns undefined when the list is complete, or will never be; else why the webhook is not ready. */
  problem(): string | undefined;
  run(signal: AbortSignal): Promise<void>;
};

const NO_RULES: Rules = {
  values: () => [],
  size: () => 0,
  isFollowing: () => false,
  problem: () => undefined,
  run: async () => {},
};

/**
 * Opens the informer of StaticIPConfigs. A missing permission or definition means that there are no rules; an outage of
 * the API server does not.
 */
function followRules({ staticIpConfigs }: WebhookConfig, { kube, clock, log, random }: WebhookRuntime): Rules {
  if (!staticIpConfigs || kube === undefined) return NO_RULES;
  let isRefused = false;
  const informer: Informer<StaticIpRule> = openInformer<StaticIpRule>({
    client: kube,
    type: resourceTypeOf(STATIC_IP_CONFIG_KIND),
    decode: (object) => {
      const { metadata, spec } = decodeOrThrow(staticIpConfig, object, 'StaticIPConfig');
      const { name, namespace } = metadata;
      return { metadata: { name, ...(namespace !== undefined && { namespace }) }, ...(spec && { spec }) };
    },
    clock,
    log,
    random,
    observer: {
      onList: () => {
        isRefused = false;
      },
      onFailure: (_, error) => {
        const refused = isKubeError(error, 'FORBIDDEN') || isKubeError(error, 'NOT_FOUND');
        if (refused && !isRefused) {
          log.error(
            'StaticIPConfigs cannot be read and are left out: grant list and watch, or --static-ip-configs=false',
            {
              error,
            },
          );
        }
        isRefused = refused;
      },
    },
  });
  return {
    values: () => informer.values(),
    size: () => informer.size,
    isFollowing: () => informer.isSynced && !isRefused,
    problem: () => (informer.isSynced || isRefused ? undefined : 'StaticIPConfigs are not read yet'),
    run: (signal) => informer.start(signal),
  };
}

type WebhookComponents = {
  readonly config: WebhookConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly server: HttpServer;
  readonly tls: TlsFollower;
  readonly rules: Rules;
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
    const { config, log, server, tls, rules, metrics } = this.#components;
    this.address = await listenOn(server.server, config.listenAddress, '--listen-address');
    if (config.clientCaFile === '')
      log.info('clients are not checked: everybody who reaches the port is answered', { flag: '--client-ca-file' });
    this.#following.push(tls.run(this.#stop.signal), rules.run(this.#stop.signal));
    log.info('serving reviews', { address: this.address, defaultNetwork: config.defaultNetwork });
    if (config.metricsAddress === '') return;
    try {
      this.#endpoints = await serveHttpEndpoints(config.metricsAddress, {
        // An answer proves that the event loop runs; no other component can get stuck.
        liveness: () => undefined,
        readiness: () => this.readiness(),
        metrics: () => metrics.render(),
        metricsContentType: metrics.contentType,
      });
    } catch (error) {
      server.closeNow();
      this.#stop.abort();
      throw error;
    }
  }

  readiness(): string | undefined {
    if (this.#ending !== undefined) return 'it is shutting down';
    const { tls, clock, rules } = this.#components;
    if (tls.pair.expiresMs <= clock.nowMs()) return 'the certificate has expired';
    return rules.problem();
  }

  checkCertificate(): void {
    this.#components.tls.check();
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
