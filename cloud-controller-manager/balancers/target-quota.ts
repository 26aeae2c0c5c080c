import type { CallContext } from '../../cloud/cloud.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';

const AGE_MS = 600_000;

type Quotas = { readonly targets?: number; readonly listeners?: number; readonly rules?: number };

/** How many targets and rules a listener of the account may have, and how many listeners a load balancer, as the cloud said within ten minutes. */
export class TargetQuota {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>;
  #quota: Promise<Quotas> = Promise.resolve({});
  #atMs = Number.NEGATIVE_INFINITY;

  constructor(deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>) {
    this.#deps = deps;
  }

  /** Returns it; undefined while it is not known. Services that are worked on at once share one question. */
  async read(context: CallContext): Promise<number | undefined> {
    return (await this.#read(context)).targets;
  }

  /** Returns the quota of listeners; undefined while it is not known. */
  async listeners(context: CallContext): Promise<number | undefined> {
    return (await this.#read(context)).listeners;
  }

  /** Returns the quota of rules of a listener; undefined while it is not known. */
  async rules(context: CallContext): Promise<number | undefined> {
    return (await this.#read(context)).rules;
  }

  async #read(context: CallContext): Promise<Quotas> {
    const { clock } = this.#deps;
    if (clock.monotonicMs() - this.#atMs >= AGE_MS) {
      this.#atMs = clock.monotonicMs();
      this.#quota = this.#ask(context);
    }
    return await this.#quota;
  }

  async #ask(context: CallContext): Promise<Quotas> {
    const { cloud, log } = this.#deps;
    try {
      const { targets, listeners, rules } = await cloud.loadBalancers.quotas(context);
      return {
        ...(targets === undefined ? {} : { targets: targets.limit }),
        ...(listeners === undefined ? {} : { listeners: listeners.limit }),
        ...(rules === undefined ? {} : { rules: rules.limit }),
      };
    } catch (error) {
      // Without it the cloud refuses what is too many.
      log.warn('the quotas of load balancers are not known', { error });
      return {};
    }
  }
}
