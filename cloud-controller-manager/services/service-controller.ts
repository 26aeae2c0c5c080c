import { DIRECT_ACCESS_ANNOTATION } from '../../crd/names.ts';
import { runController } from '../../kube/controller.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { WorkQueue } from '../../kube/work-queue.ts';
import { OwnerAddresses } from '../balancers/owner-addresses.ts';
import { readOwnerMark } from '../balancers/owner-mark.ts';
import type { AddressSource } from '../balancers/publish-addresses.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { usesConfig } from '../service-configs/choose-config.ts';
import { ConfigsOfOwners } from '../service-configs/configs-of-owners.ts';
import { decideService } from './decide-service.ts';
import { type DirectOwner, type GateSource, selectorOf } from './gate-source.ts';
import { PoolSweep } from './pool-sweep.ts';
import { readAnnotations } from './read-annotations.ts';
import { readServiceHead } from './read-service.ts';
import { SERVED_ANNOTATIONS } from './served-annotations.ts';
import { ServiceSync } from './service-sync.ts';
import { GATHER_MS, GATHER_PODS_MS, OWNER_BACKOFF, type SharedParts } from './shared-parts.ts';

/**
 * Services that are worked on at once; those of one namespace take at most half. Changes of one load balancer wait for each
 * other in the cloud.
 */
const WORKERS = 256;

/** Keeps a load balancer for each Service of type LoadBalancer, with Nodes or Pods as its backends. */
export class ServiceController {
  readonly #deps: ControllerDeps;
  readonly #parts: SharedParts;
  readonly #queue: WorkQueue;
  readonly #sync: ServiceSync;

  constructor(deps: ControllerDeps, parts: SharedParts) {
    const { clock, random } = deps;
    const { pods, gates, published, configs } = parts;
    this.#deps = deps;
    this.#parts = parts;
    const queue = new WorkQueue({ clock, random, backoff: OWNER_BACKOFF });
    this.#queue = queue;
    const followed = pods.open((key, isUrgent) => {
      if (isUrgent) queue.addFirst(key);
      else queue.addAfter(key, GATHER_PODS_MS);
    });
    this.#sync = new ServiceSync(deps, {
      ...parts,
      followed,
      gates: gates.of('service'),
      published: new OwnerAddresses(published, 'service'),
      configs: new ConfigsOfOwners(deps, configs),
    });
  }

  /** What Services have as targets, for the lists of published addresses. */
  get addresses(): AddressSource {
    const { services } = this.#parts;
    return {
      kind: 'service',
      boundServices: () => [...services.values()].filter((one) => this.#bindsPods(one)).map(keyOf),
      hasUnknown: (isKnown) =>
        [...services.values()].some((service) => this.#mayHaveTargets(service) && !isKnown(keyOf(service))),
    };
  }

  /** The Services with direct access, as readiness gates depend on them. */
  get direct(): GateSource {
    const { services } = this.#parts;
    return {
      isReady: () => services.isSynced,
      owners: () => [...services.values()].flatMap((one) => directOwnerOf(one, this.#deps.config.loadBalancerClass)),
    };
  }

  /** Notes that something has changed on which all load balancers depend. */
  changed(): void {
    for (const key of this.#parts.services.keys()) this.#queue.addAfter(key, GATHER_MS);
  }

  /** Notes that a TkeServiceConfig has changed: its `namespace/name`, or '' for any. */
  configChanged(key: string): void {
    for (const service of this.#parts.services.values()) {
      const head = readServiceHead(service);
      if (decideService(head, this.#deps.config.loadBalancerClass) === 'ignore') continue;
      const { settings } = readAnnotations(head.annotations, head.labels);
      if (usesConfig({ ...head, ...settings }, key)) this.#queue.addAfter(head.key, GATHER_MS);
    }
  }

  /** Notes that another program, which kept the load balancers, has gone. */
  takeOver(): void {
    for (const key of this.#parts.services.keys()) this.#queue.add(key);
  }

  /** Keeps load balancers until aborted, once the Services were read. */
  async run(signal: AbortSignal): Promise<void> {
    const { services, gates, mayAct, order } = this.#parts;
    const { clock, log, metrics } = this.#deps;
    const stop = services.subscribe(({ key }) => {
      this.#queue.add(key);
      gates.notify();
    });
    const poolSweep = new PoolSweep(this.#deps, this.#sync.pools, () => services.isSynced && mayAct());
    const options = {
      ...{ name: 'service-lb-controller', queue: this.#queue, workers: WORKERS, clock, log },
      observer: metrics.controller,
      reconcile: async (key: string, ended: AbortSignal) =>
        mayAct() && this.#mayBegin(key) ? await this.#sync.reconcile(key, ended) : ({ kind: 'done' } as const),
    };
    const begin = async (): Promise<void> => {
      await order.run(() => this.#queueAll(), signal);
      await poolSweep.run(signal);
    };
    try {
      await Promise.all([runController(options, signal), begin()]);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      stop();
      this.#queue.close();
    }
  }

  #queueAll(): void {
    const { services, order } = this.#parts;
    for (const service of services.values())
      if (order.isFirst(this.#boundOf(service))) this.#queue.addFirst(keyOf(service));
      else this.#queue.add(keyOf(service));
  }

  #mayBegin(key: string): boolean {
    const { services, nodes, order } = this.#parts;
    const service = services.get(key);
    return order.mayBegin(service === undefined || nodes.vpcId === undefined ? [] : this.#boundOf(service));
  }

  /** The Service itself where its Pods are targets of a load balancer that it has. */
  #boundOf(service: KubeObject): readonly string[] {
    const head = readServiceHead(service);
    return readOwnerMark(head).loadBalancerId !== undefined && this.#bindsPods(service) ? [head.key] : [];
  }

  /** Whether the Pods of a Service are bound by their addresses. */
  #bindsPods(service: KubeObject): boolean {
    const head = readServiceHead(service);
    if (decideService(head, this.#deps.config.loadBalancerClass) !== 'serve') return false;
    return readAnnotations(head.annotations, head.labels).settings.directAccess === true;
  }

  /** Whether a Service has a load balancer that is read. One with mode skip keeps its targets. */
  #mayHaveTargets(service: KubeObject): boolean {
    const head = readServiceHead(service);
    return (
      readOwnerMark(head).loadBalancerId !== undefined &&
      decideService(head, this.#deps.config.loadBalancerClass) !== 'ignore'
    );
  }
}

/** Returns a Service with direct access, as gates depend on it; nothing for another one. One with mode skip binds no Pod. */
function directOwnerOf(object: KubeObject, loadBalancerClass: string): readonly DirectOwner[] {
  if (object.metadata.annotations?.[DIRECT_ACCESS_ANNOTATION] !== 'true') return [];
  const head = readServiceHead(object);
  if (decideService(head, loadBalancerClass) !== 'serve') return [];
  if (head.annotations[SERVED_ANNOTATIONS.mode.name] === 'skip') return [];
  const { key } = head;
  return [{ kind: 'service', key, planKey: key, object, selectors: [selectorOf(object)] }];
}

function keyOf(object: KubeObject): string {
  return readServiceHead(object).key;
}
