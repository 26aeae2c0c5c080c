import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { CLUSTER_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { poolOwnerOf } from './plan-load-balancer.ts';
import type { PoolPlacer } from './pool-placer.ts';

type SweepDeps = Pick<ControllerDeps, 'cloud' | 'clock' | 'config' | 'log'>;

/** So often it is looked for empty ones; one that is empty twice is deleted. */
const PERIOD_MS = 600_000;

/** Deletes load balancers of pools that no Service has any more. One with a listener of anybody stays. */
export class PoolSweep {
  readonly #deps: SweepDeps;
  readonly #pools: Pick<PoolPlacer, 'runAlone' | 'isUsed'>;
  readonly #mayAct: () => boolean;
  #empty: ReadonlySet<string> = new Set();

  /** @param mayAct whether the Services are known, and no other controller keeps load balancers */
  constructor(deps: SweepDeps, pools: Pick<PoolPlacer, 'runAlone' | 'isUsed'>, mayAct: () => boolean) {
    this.#deps = deps;
    this.#pools = pools;
    this.#mayAct = mayAct;
  }

  /** Sweeps until aborted; ends then. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, config, log } = this.#deps;
    const context: CallContext = { priority: 'gc', owner: 'pools', signal, timeoutMs: config.cloudTimeoutMs };
    while (!signal.aborted) {
      await clock.sleep(PERIOD_MS, signal).catch(() => {});
      if (signal.aborted || !this.#mayAct()) continue;
      try {
        await this.#sweep(context);
      } catch (error) {
        if (signal.aborted) return;
        if (!isCloudError(error)) throw error;
        log.warn('empty load balancers of pools were not looked for', { error });
      }
    }
  }

  async #sweep(context: CallContext): Promise<void> {
    const { cloud, config } = this.#deps;
    const query = { tag: { key: CLUSTER_TAG, value: config.clusterId } };
    const { loadBalancers, isConsistent } = await cloud.loadBalancers.find(query, context);
    if (!isConsistent) return;
    const prefix = poolOwnerOf(config.clusterId, '');
    const empty = new Set<string>();
    for (const { loadBalancerId, tags, isNormal, isDeleteProtected } of loadBalancers) {
      const owner = tags[OWNER_TAG] ?? '';
      if (!owner.startsWith(prefix) || !isNormal || isDeleteProtected) continue;
      const isEmpty = async (): Promise<boolean> =>
        !this.#pools.isUsed(loadBalancerId) && (await cloud.listeners.list(loadBalancerId, context)).length === 0;
      if (!(await isEmpty())) continue;
      if (this.#empty.has(loadBalancerId))
        await this.#pools.runAlone(owner, async () => {
          if (await isEmpty()) await this.#delete(loadBalancerId, context);
        });
      else empty.add(loadBalancerId);
    }
    this.#empty = empty;
  }

  async #delete(loadBalancerId: string, context: CallContext): Promise<void> {
    const { cloud, log } = this.#deps;
    try {
      const task = await cloud.loadBalancers.delete(loadBalancerId, context);
      await cloud.loadBalancers.settle(task, context);
      log.info('an empty load balancer of a pool is deleted', { loadBalancerId });
    } catch (error) {
      if (!isCloudError(error, 'gone', 'never')) throw error;
      if (isCloudError(error, 'never')) log.warn('an empty load balancer of a pool stays', { loadBalancerId, error });
    }
  }
}
