import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import { CLUSTER_TAG } from '../../crd/cloud-tags.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';

/** It serves a start, and is forgotten afterwards. */
const AGE_MS = 120_000;

/** The load balancers with the tag of the cluster, listed once for all Services: a call for each hundred of them. */
export class BalancerDirectory {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'config' | 'log'>;
  #listed: Promise<ReadonlyMap<string, LoadBalancer>> | undefined;
  #listedAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'config' | 'log'>) {
    this.#deps = deps;
  }

  /** Returns a load balancer that is complete; undefined when it is not listed, or not known. */
  async find(loadBalancerId: string, context: CallContext): Promise<LoadBalancer | undefined> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#listed === undefined || nowMs - this.#listedAtMs >= AGE_MS) {
      this.#listedAtMs = nowMs;
      this.#listed = this.#list(context);
    }
    const found = (await this.#listed).get(loadBalancerId);
    return found?.isNormal ? found : undefined;
  }

  /** Forgets a list that no start needs any more. */
  forgetOld(): void {
    if (this.#deps.clock.monotonicMs() - this.#listedAtMs >= AGE_MS) this.#listed = undefined;
  }

  async #list(context: CallContext): Promise<ReadonlyMap<string, LoadBalancer>> {
    const { cloud, config, log } = this.#deps;
    try {
      const query = { tag: { key: CLUSTER_TAG, value: config.clusterId } };
      const { loadBalancers } = await cloud.loadBalancers.find(query, context);
      return new Map(loadBalancers.map((one) => [one.loadBalancerId, one]));
    } catch (error) {
      if (!isCloudError(error)) throw error;
      log.warn('load balancers are read one by one, as they could not be listed', { error });
      return new Map();
    }
  }
}
