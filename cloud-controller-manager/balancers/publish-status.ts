import { findMissingRights, renderRight } from '../../kube/ask-rights.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { BalancerOwner, StatusAddress } from './balancer-owner.ts';
import type { OwnerEvents } from './owner-reports.ts';
import { type OwnerObjects, renderAddress } from './write-owner.ts';

const ASK_AGAIN_MS = 60_000;
/** The program that events and metrics name. */
const CONTROLLERS = { service: 'service-lb-controller', ingress: 'ingress-lb-controller' } as const;

type StatusDeps = Pick<ControllerDeps, 'kube' | 'clock' | 'log' | 'metrics'>;

/** Writes where clients reach owners. The published role has no right to their status: then an annotation has to do. */
export class StatusPublisher<H extends BalancerOwner> {
  readonly #deps: StatusDeps;
  readonly #objects: OwnerObjects<H>;
  readonly #reports: Pick<OwnerEvents, 'problems'>;
  #isGranted: Promise<boolean> = Promise.resolve(false);
  #askedAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: StatusDeps, objects: OwnerObjects<H>, reports: Pick<OwnerEvents, 'problems'>) {
    this.#deps = deps;
    this.#objects = objects;
    this.#reports = reports;
  }

  /** Writes where clients reach an owner, and reports its problems. No write when nothing has changed. @throws KubeError */
  async publish(
    object: KubeObject,
    addresses: readonly StatusAddress[],
    problems: Parameters<OwnerEvents['problems']>[1],
    signal: AbortSignal,
  ): Promise<void> {
    const head = this.#objects.headOf(object);
    const address = renderAddress(addresses);
    const written = await this.#objects.writeAddress(object, address, signal);
    if (await this.isAllowed(signal)) {
      await this.#objects.writeStatus(written, addresses, signal);
      this.#reports.problems(head, problems);
      return;
    }
    const { kind } = this.#objects.type.resource;
    const message = `the status of the ${kind} stays empty: tke-cloud-controller-manager may not ${renderRight(this.#right)}. Its load balancer works; the address is ${address}, in the annotation tke.cloud.tencent.com/load-balancer-address. Grant the right, as docs/cloud-controller-manager.md says`;
    this.#reports.problems(head, [...problems, { reason: 'StatusForbidden', message }]);
  }

  get #right() {
    const { group, plural } = this.#objects.type.resource;
    return { verb: 'patch', ...(group === '' ? {} : { group }), resource: plural, subresource: 'status' };
  }

  /** Reports whether the status may be written. A right that is granted stays; one that is missing is asked for again after a minute. */
  async isAllowed(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#deps;
    if (!(await this.#isGranted) && clock.monotonicMs() - this.#askedAtMs >= ASK_AGAIN_MS) {
      this.#askedAtMs = clock.monotonicMs();
      this.#isGranted = this.#ask(signal);
    }
    return await this.#isGranted;
  }

  async #ask(signal: AbortSignal): Promise<boolean> {
    const { kube, metrics, log } = this.#deps;
    const right = this.#right;
    try {
      const missing = await findMissingRights(kube, [right], signal);
      const problem = { kind: 'Forbidden', name: `${CONTROLLERS[this.#objects.kind]}: ${renderRight(right)}` };
      metrics.problems.reportOfTerm(`${right.resource}/status`, missing.length === 0 ? [] : [problem]);
      return missing.length === 0;
    } catch (error) {
      // The write itself shows what is missing.
      log.warn('the API server does not say whether the status may be written', { right: renderRight(right), error });
      return true;
    }
  }
}
