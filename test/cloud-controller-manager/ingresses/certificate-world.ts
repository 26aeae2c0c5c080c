import type { Certificate } from '../../../cloud/certificates.ts';
import type { CallContext } from '../../../cloud/cloud.ts';
import { createTencentCloud, type TencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { CertificateUploads } from '../../../cloud-controller-manager/ingresses/keep-certificates.ts';
import {
  type OwnCertificate,
  parseOwnCertificate,
} from '../../../cloud-controller-manager/ingresses/own-certificate.ts';
import { sweepCertificates } from '../../../cloud-controller-manager/ingresses/sweep-certificates.ts';
import { createCcmMetrics } from '../../../cloud-controller-manager/observability/metrics.ts';
import type { Logger } from '../../../runtime/log.ts';
import { makeCertificate } from '../../../runtime/make-certificate.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { ProcessLives } from '../process-lives.ts';

const VPC = 'vpc-00000001';
const SUBNET = 'subnet-node0001';
const DAY_MS = 86_400_000;
/** 2026-01-01, milliseconds since the epoch: the clock of a world begins there. */
const START_MS = Date.UTC(2026, 0, 1);
export const CLUSTER = 'cls-certs001';

/** A log that keeps what it is given. */
export function keepingLog(lines: unknown[]): Logger {
  const note = (message: string, fields?: object): void => void lines.push([message, fields]);
  const log: Logger = { debug: note, info: note, warn: note, error: note, child: () => log };
  return log;
}

/** A certificate of a Secret for a host, that is valid for 90 days from the start. */
export function newOwn(host: string): OwnCertificate {
  const spec = { commonName: host, use: 'server' as const, names: [host] };
  const { cert, key } = makeCertificate({
    ...spec,
    notBeforeMs: START_MS - DAY_MS,
    notAfterMs: START_MS + 90 * DAY_MS,
  });
  const own = parseOwnCertificate(cert, key);
  if (typeof own === 'string') throw new Error(own);
  return own;
}

/** The uploads of a plan. */
export function uploadsOf(...certificates: readonly OwnCertificate[]): ReadonlyMap<string, OwnCertificate> {
  return new Map(certificates.map((one) => [one.hash, one]));
}

/** One process that keeps certificates. */
type KeeperLife = {
  /** The cloud, as this process uses it. */
  readonly cloud: TencentCloud;
  readonly keeper: CertificateUploads;
  readonly metrics: () => Promise<string>;
  /** Ends its sweep. */
  readonly stop: () => void;
};

/** A cloud on a virtual clock, a person, and processes that keep certificates. */
export class CertificateWorld {
  readonly clock = new VirtualClock(START_MS);
  readonly host: CloudHost;
  readonly lives = new ProcessLives();
  /** What was logged, by all processes. */
  readonly lines: unknown[] = [];
  /** The cloud, as a person uses it. */
  readonly cloud: TencentCloud;

  constructor() {
    const subnets = [{ subnetId: SUBNET, zone: 'ap-guangzhou-3', cidr: '10.0.0.0/16' }];
    this.host = new CloudHost({ vpcId: VPC, subnets }, this.clock, { seed: 5, latencyMs: [20, 60] });
    this.cloud = createTencentCloud({ api: createInProcessApi(this.host), clock: this.clock, random: () => 0.5 });
  }

  /** Begins a process, in the place of the one before. Its sweep runs from then on. */
  begin(clusterId = CLUSTER): KeeperLife {
    const { clock } = this;
    const { api } = this.lives.begin();
    const cloud = createTencentCloud({ api: api(createInProcessApi(this.host)), clock, random: seededRandom(1) });
    const metrics = createCcmMetrics(clock, { release: 'test' });
    const config = { clusterId, cloudTimeoutMs: 60_000 };
    const deps = { cloud, clock, log: keepingLog(this.lines), metrics, config };
    const keeper = new CertificateUploads(deps);
    const ended = new AbortController();
    const sweeping = sweepCertificates(deps, keeper, () => true, ended.signal);
    const stop = (): void => {
      ended.abort();
      sweeping.catch(() => {});
    };
    return { keeper, cloud, stop, metrics: () => metrics.registry.metrics() };
  }

  contextOf(): CallContext {
    return { priority: 'warm', owner: 'default/web', signal: new AbortController().signal, timeoutMs: 60_000 };
  }

  /** Certificates of the account, the oldest first. */
  certificates(): readonly { readonly certId: string; readonly domain: string }[] {
    return this.host.model.state.certificates.all();
  }

  ids(): readonly string[] {
    return this.certificates().map(({ certId }) => certId);
  }

  /** Uploads a certificate as a person does; returns its id. */
  async upload(own: OwnCertificate, tags: Certificate['tags'] = {}): Promise<string> {
    const { chain, privateKey } = own;
    return await this.clock.run(
      this.cloud.certificates.upload({ name: 'of-a-person', chain, privateKey, tags }, this.contextOf()),
    );
  }

  /** Makes a load balancer whose listener of HTTPS shows a certificate; returns what changes it to another one. */
  async show(certId: string): Promise<(certId: string) => Promise<void>> {
    const { clock } = this;
    const { loadBalancers, listeners } = this.cloud;
    const context = this.contextOf();
    const spec = { type: 'OPEN', name: 'web', vpcId: VPC } as const;
    const task = await clock.run(loadBalancers.create(spec, context));
    const outcome = await clock.run(loadBalancers.settle(task, context));
    const [id = ''] = outcome.kind === 'done' ? outcome.loadBalancerIds : [];
    const settings = { certificate: { certIds: [certId] } };
    const ports = [{ port: 443, name: 'web' }];
    const made = await clock.run(listeners.create(id, { protocol: 'HTTPS', ports, settings }, context));
    await clock.run(loadBalancers.settle(made.task, context));
    return async (other) => {
      const changes = { certificate: { certIds: [other] } };
      const change = await clock.run(listeners.modify(id, made.listenerIds[0] ?? '', changes, context));
      await clock.run(loadBalancers.settle(change, context));
    };
  }
}
