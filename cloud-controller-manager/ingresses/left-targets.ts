import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import type { Target } from '../../cloud/targets.ts';
import { OWNER_TAG } from '../../crd/cloud-tags.ts';
import { ownerOf } from '../balancers/balancer-owner.ts';
import type { OwnerAddresses } from '../balancers/owner-addresses.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';

/** Stands for all Ingresses in the lists of published addresses while they cannot be read; no key of an object. */
export const ALL_INGRESSES = '*';

/** A registration of a process before this one may take effect so much later. */
const FIRST_MS = 60_000;
const LOOK_MS = 30_000;
const PROTOCOLS = ['HTTP', 'HTTPS'];

type LeftDeps = Pick<ControllerDeps, 'clock' | 'log' | 'config'> & {
  readonly cloud: Pick<ControllerDeps['cloud'], 'loadBalancers' | 'listeners' | 'targets'>;
};

/**
 * Finds the targets that Ingresses had when they could be read: all that listeners of HTTP of the VPC have, whatever they are
 * called, as another client may have renamed one. Published addresses of all else can be taken back then.
 */
export class LeftTargets {
  readonly #deps: LeftDeps;
  readonly #published: Pick<OwnerAddresses, 'isOld' | 'note' | 'forget'>;
  readonly #vpcId: () => string | undefined;

  constructor(
    deps: LeftDeps,
    published: Pick<OwnerAddresses, 'isOld' | 'note' | 'forget'>,
    vpcId: () => string | undefined,
  ) {
    this.#deps = deps;
    this.#published = published;
    this.#vpcId = vpcId;
  }

  /** Looks now and then until aborted, where addresses are published; ends then. Faults of the cloud are logged. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, config, log } = this.#deps;
    const context: CallContext = { priority: 'gc', owner: 'ingresses', signal, timeoutMs: config.cloudTimeoutMs };
    try {
      await clock.sleep(FIRST_MS, signal);
      for (;;) {
        const vpcId = this.#vpcId();
        try {
          if (vpcId !== undefined && this.#published.isOld(ALL_INGRESSES)) await this.#look(vpcId, context);
        } catch (error) {
          if (!isCloudError(error)) throw error;
          log.warn('targets of Ingresses were not read, will be tried again', { error });
        }
        await clock.sleep(LOOK_MS, signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Forgets what was found: Ingresses say themselves what they have. */
  forget(): void {
    this.#published.forget(ALL_INGRESSES);
  }

  async #look(vpcId: string, context: CallContext): Promise<void> {
    const { loadBalancers, isConsistent } = await this.#deps.cloud.loadBalancers.find({ vpcId }, context);
    if (!isConsistent) return;
    const targets: Target[] = [];
    for (const balancer of loadBalancers)
      if (!this.#isOfService(balancer)) targets.push(...(await this.#targetsOf(balancer, context)));
    this.#published.note(ALL_INGRESSES, targets);
  }

  async #targetsOf({ loadBalancerId: id }: LoadBalancer, context: CallContext): Promise<readonly Target[]> {
    const { listeners, targets } = this.#deps.cloud;
    try {
      const ids = (await listeners.list(id, context)).flatMap(({ listenerId, protocol }) =>
        PROTOCOLS.includes(protocol) ? [listenerId] : [],
      );
      return ids.length === 0 ? [] : await targets.list(id, ids, context);
    } catch (error) {
      if (isCloudError(error, 'gone')) return [];
      throw error;
    }
  }

  /** That of a Service is used by no Ingress, unless it outlived the Service: then it is protected, whatever it is called. */
  #isOfService(balancer: LoadBalancer): boolean {
    const ofService = ownerOf(this.#deps.config.clusterId, '', 'service');
    return balancer.tags[OWNER_TAG]?.startsWith(ofService) === true && !balancer.isDeleteProtected;
  }
}
