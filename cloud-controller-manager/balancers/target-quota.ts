import type { CallContext } from '../../cloud/cloud.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';

const AGE_MS = 600_000;
/** After a question without an answer. */
const RETRY_MS = 60_000;

type Quotas = { readonly targets?: number; readonly listeners?: number; readonly rules?: number };

/** How many targets and rules a listener of the account may have, and how many listeners a load balancer, as the cloud said last: it is asked each ten minutes. */
export class TargetQuota {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>;
  #quota: Promise<Quotas> = Promise.resolve({});
  #dueMs = Number.NEGATIVE_INFINITY;

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
    if (clock.monotonicMs() >= this.#dueMs) {
      this.#dueMs = clock.monotonicMs() + AGE_MS;
      this.#quota = this.#ask(this.#quota, context);
    }
    return await this.#quota;
  }

  /** @param before what was known before: it holds where the cloud does not answer */
  async #ask(before: Promise<Quotas>, context: CallContext): Promise<Quotas> {
    const { cloud, clock, log } = this.#deps;
    const known = await before;
    try {
      const { targets, listeners, rules } = await cloud.loadBalancers.quotas(context);
      return {
        ...known,
        ...(targets === undefined ? {} : { targets: targets.limit }),
        ...(listeners === undefined ? {} : { listeners: listeners.limit }),
        ...(rules === undefined ? {} : { rules: rules.limit }),
      };
    } catch (error) {
      // Without any the cloud refuses what is too many.
      log.warn('the quotas of load balancers cannot be read; those that were read last hold', { error });
      this.#dueMs = clock.monotonicMs() + RETRY_MS;
      return known;
    }
  }
}
