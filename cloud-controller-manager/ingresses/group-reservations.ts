import type { CallContext } from '../../cloud/cloud.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import { refuseNamespace } from '../balancers/kept-balancer.ts';
import { blocking, type Notice } from '../balancers/notice.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';

type ReservationDeps = Pick<ControllerDeps, 'clock'> & {
  readonly cloud: { readonly loadBalancers: Pick<ControllerDeps['cloud']['loadBalancers'], 'describe'> };
  readonly config: Pick<ControllerDeps['config'], 'clusterId'>;
};

/** Tags change rarely. */
const AGE_MS = 600_000;

/** Knows which namespaces may use the load balancers that groups share: a call for each every ten minutes. */
export class GroupReservations {
  readonly #deps: ReservationDeps;
  readonly #known = new Map<string, { readonly balancer: LoadBalancer | undefined; readonly untilMs: number }>();

  constructor(deps: ReservationDeps) {
    this.#deps = deps;
  }

  /** Returns what says why a load balancer may not be used for a namespace. @throws CloudError */
  async of(loadBalancerId: string, context: CallContext): Promise<(namespace: string) => Notice | undefined> {
    const { cloud, clock, config } = this.#deps;
    const known = this.#known.get(loadBalancerId);
    const isKnown = known?.balancer !== undefined && clock.monotonicMs() < known.untilMs;
    const [balancer] = isKnown ? [known.balancer] : await cloud.loadBalancers.describe([loadBalancerId], context);
    if (!isKnown) this.#known.set(loadBalancerId, { balancer, untilMs: clock.monotonicMs() + AGE_MS });
    return (namespace) => {
      const why = balancer === undefined ? undefined : refuseNamespace(balancer, config.clusterId, namespace);
      return why === undefined ? undefined : blocking('IngressRefused', `the load balancer ${loadBalancerId} ${why}`);
    };
  }

  /** Forgets a load balancer. */
  forget(loadBalancerId: string): void {
    this.#known.delete(loadBalancerId);
  }
}
