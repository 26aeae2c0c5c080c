import { findMissingRights } from '../../kube/ask-rights.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type Ingress, readServiceHead } from './read-service.ts';
import type { ServiceReports } from './service-reports.ts';
import type { ServiceWriter } from './write-service.ts';

const ASK_AGAIN_MS = 60_000;
const PROBLEM = 'services/status';

type StatusDeps = Pick<ControllerDeps, 'kube' | 'clock' | 'log' | 'metrics'>;

/** Writes where clients reach Services. The published role has no right to their status: then an annotation has to do. */
export class StatusPublisher {
  readonly #deps: StatusDeps;
  readonly #writer: ServiceWriter;
  readonly #reports: Pick<ServiceReports, 'problems'>;
  #isGranted: Promise<boolean> = Promise.resolve(false);
  #askedAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: StatusDeps, writer: ServiceWriter, reports: Pick<ServiceReports, 'problems'>) {
    this.#deps = deps;
    this.#writer = writer;
    this.#reports = reports;
  }

  /** Writes where clients reach a Service, and reports its problems. No write when nothing has changed. @throws KubeError */
  async publish(
    object: KubeObject,
    ingress: readonly Ingress[],
    problems: Parameters<ServiceReports['problems']>[1],
    signal: AbortSignal,
  ): Promise<void> {
    const head = readServiceHead(object);
    const address = ingress.map(({ ip, hostname }) => ip ?? hostname).join();
    const written = await this.#writer.writeAddress(object, address, signal);
    if (await this.#isAllowed(signal)) {
      await this.#writer.writeStatus(written, ingress, signal);
      this.#reports.problems(head, problems);
      return;
    }
    const message = `the status of the Service stays empty: tke-cloud-controller-manager may not patch services/status. Its load balancer works; the address is ${address}, in the annotation tke.cloud.tencent.com/load-balancer-address. Grant the right, as docs/cloud-controller-manager.md says`;
    this.#reports.problems(head, [...problems, { reason: 'StatusForbidden', message }]);
  }

  /** Withdraws what is reported. */
  close(): void {
    this.#deps.metrics.problems.report(PROBLEM, []);
  }

  /** Asks the API server. A right that is granted stays; one that is missing is asked for again after a minute. */
  async #isAllowed(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#deps;
    if (!(await this.#isGranted) && clock.monotonicMs() - this.#askedAtMs >= ASK_AGAIN_MS) {
      this.#askedAtMs = clock.monotonicMs();
      this.#isGranted = this.#ask(signal);
    }
    return await this.#isGranted;
  }

  async #ask(signal: AbortSignal): Promise<boolean> {
    const { kube, metrics, log } = this.#deps;
    const right = { verb: 'patch', resource: 'services', subresource: 'status' };
    try {
      const missing = await findMissingRights(kube, [right], signal);
      const problem = { kind: 'Forbidden', name: 'service-lb-controller: patch services/status' };
      metrics.problems.report(PROBLEM, missing.length === 0 ? [] : [problem]);
      return missing.length === 0;
    } catch (error) {
      // The write itself shows what is missing.
      log.warn('the API server does not say whether the status of Services may be written', { error });
      return true;
    }
  }
}
