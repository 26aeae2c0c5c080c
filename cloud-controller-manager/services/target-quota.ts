import type { CallContext } from '../../cloud/cloud.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';

const AGE_MS = 600_000;

/** How many targets a listener of the account may have, as the cloud said within ten minutes. */
export class TargetQuota {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>;
  #quota: Promise<number | undefined> = Promise.resolve(undefined);
  #atMs = Number.NEGATIVE_INFINITY;

  constructor(deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>) {
    this.#deps = deps;
  }

  /** Returns it; undefined while it is not known. Services that are worked on at once share one question. */
  async read(context: CallContext): Promise<number | undefined> {
    const { clock } = this.#deps;
    if (clock.monotonicMs() - this.#atMs >= AGE_MS) {
      this.#atMs = clock.monotonicMs();
      this.#quota = this.#ask(context);
    }
    return await this.#quota;
  }

  async #ask(context: CallContext): Promise<number | undefined> {
    const { cloud, log } = this.#deps;
    try {
      return (await cloud.loadBalancers.quotas(context)).targets?.limit;
    } catch (error) {
      // Without it the cloud refuses what is too many.
      log.warn('the quotas of load balancers are not known', { error });
      return undefined;
    }
  }
}
