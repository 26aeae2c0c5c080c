import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { OwnerReports, OwnerWriter } from './balancer-owner.ts';
import type { LoadBalancerStep } from './load-balancer-step.ts';
import { readOwnerMark, tokenOf } from './owner-mark.ts';
import { StepError } from './run-step.ts';
import { APPEARS_MS } from './unresolved-calls.ts';

/** The owner has changed since the creation with a token was sent: what that made is still to be found. */
const OTHER_REQUEST = 'UnsupportedOperation.IdempotentParameterMismatch';
/** The creation with a token has failed, so that the token is used up. */
const TOKEN_USED_UP = 'InvalidParameter.ClientTokenLimitExceeded';

/** Makes load balancers, each with a token that is on record before. */
export class BalancerCreator {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'clock'>;
  readonly #writer: OwnerWriter;
  readonly #reports: Pick<OwnerReports, 'progress'>;
  /** By ClientToken or id: since when the cloud does not know a creation, or a load balancer. */
  readonly #lostSinceMs = new Map<string, number>();

  constructor(
    deps: Pick<ControllerDeps, 'cloud' | 'clock'>,
    writer: OwnerWriter,
    reports: Pick<OwnerReports, 'progress'>,
  ) {
    this.#deps = deps;
    this.#writer = writer;
    this.#reports = reports;
  }

  /**
   * Makes the load balancer of an owner.
   * @returns the object with the id; undefined when it is not known yet what became of the creation
   * @throws CloudError, KubeError, StepError
   */
  async create(
    object: KubeObject,
    { spec }: Extract<LoadBalancerStep, { readonly kind: 'create' }>,
    owner: string,
    context: CallContext,
  ): Promise<KubeObject | undefined> {
    const { loadBalancers } = this.#deps.cloud;
    const head = this.#writer.headOf(object);
    const mark = readOwnerMark(head);
    const isUnderWay = mark.serial > 0 && mark.loadBalancerId === undefined;
    const serial = isUnderWay ? mark.serial : mark.serial + 1;
    // The write fails when the object has changed since it was read.
    const recorded = await this.#writer.writeMark(object, { serial }, context.signal);
    this.#reports.progress(head, { reason: 'EnsuringLoadBalancer', message: 'Ensuring load balancer' });
    const clientToken = tokenOf(owner, serial);
    try {
      const task = await loadBalancers.create({ ...spec, clientToken }, context);
      const outcome = await loadBalancers.settle(task, context);
      const [loadBalancerId] = outcome.kind === 'done' ? outcome.loadBalancerIds : [];
      if (loadBalancerId !== undefined)
        return await this.#writer.writeMark(recorded, { serial, loadBalancerId }, context.signal);
      if (outcome.kind === 'lost' && this.isLost(clientToken))
        await this.#writer.writeMark(recorded, { serial: serial + 1 }, context.signal);
      if (outcome.kind !== 'failed') return undefined;
      await this.#writer.writeMark(recorded, { serial: serial + 1 }, context.signal);
      throw new StepError(`the cloud did not make the load balancer: ${outcome.reason}`);
    } catch (error) {
      if (!isCloudError(error)) throw error;
      const isOver = error.code === TOKEN_USED_UP || (error.code === OTHER_REQUEST && this.isLost(clientToken));
      if (!isOver && error.code !== OTHER_REQUEST) throw error;
      if (isOver) await this.#writer.writeMark(recorded, { serial: serial + 1 }, context.signal);
      return undefined;
    }
  }

  /** Notes that a load balancer was found. */
  found(loadBalancerId: string): void {
    this.#lostSinceMs.delete(loadBalancerId);
  }

  /** Reports whether something was not found a minute ago either: an answer may be as of a while ago. */
  isLost(what: string): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const sinceMs = this.#lostSinceMs.get(what) ?? nowMs;
    this.#lostSinceMs.set(what, sinceMs);
    if (nowMs - sinceMs < APPEARS_MS) return false;
    this.#lostSinceMs.delete(what);
    return true;
  }
}
