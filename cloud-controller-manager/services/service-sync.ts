import type { CallContext } from '../../cloud/cloud.ts';
import { LOAD_BALANCER_ID_ANNOTATION } from '../../crd/foreign-names.ts';
import { DIRECT_ACCESS_ANNOTATION, SERVICE_FINALIZER } from '../../crd/names.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { SERVICES } from '../../kube/resource-types.ts';
import type { BackendNodes } from '../backends/backend-nodes.ts';
import type { FollowedServices, PodFollower } from '../backends/follow-pods.ts';
import { type BalancerOwner, listenerNameOf } from '../balancers/balancer-owner.ts';
import type { ListenerMemory } from '../balancers/listener-memory.ts';
import type { OwnerAddresses } from '../balancers/owner-addresses.ts';
import type { OwnerGates, OwnerPlan } from '../balancers/owner-plan.ts';
import { OwnerEvents } from '../balancers/owner-reports.ts';
import { OwnerSync } from '../balancers/owner-sync.ts';
import type { OwnerUnit } from '../balancers/owner-unit.ts';
import { StatusPublisher } from '../balancers/publish-status.ts';
import type { ReleaseSettings } from '../balancers/release-balancer.ts';
import type { StartOrder } from '../balancers/start-order.ts';
import type { TargetQuota } from '../balancers/target-quota.ts';
import { RESYNC_MS } from '../balancers/units-in-order.ts';
import { OwnerObjects, type OwnerType } from '../balancers/write-owner.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { ConfigsOfOwners } from '../service-configs/configs-of-owners.ts';
import { decideService } from './decide-service.ts';
import { planAddresses, poolOwnerOf } from './plan-load-balancer.ts';
import { PoolPlacer } from './pool-placer.ts';
import { readAnnotations } from './read-annotations.ts';
import { readServiceHead, type ServiceHead } from './read-service.ts';
import type { ServiceSettings } from './served-annotations.ts';
import { ServicePlanner } from './service-planner.ts';

/** Services as owners of load balancers. */
const SERVICE_OWNER: OwnerType<ServiceHead> = {
  kind: 'service',
  resource: SERVICES,
  finalizer: SERVICE_FINALIZER,
  idAnnotation: LOAD_BALANCER_ID_ANNOTATION,
  headOf: readServiceHead,
  addressesOf: ({ ingress }) => ingress,
};

/** What Services are kept with; some of it is shared with other owners. */
type ServiceParts = {
  readonly services: Pick<Informer<KubeObject>, 'get' | 'values'>;
  readonly nodes: BackendNodes;
  readonly pods: PodFollower;
  readonly followed: FollowedServices;
  readonly gates: OwnerGates;
  readonly published: OwnerAddresses;
  readonly memory: ListenerMemory;
  readonly configs: Pick<ConfigsOfOwners, 'find'>;
  readonly quota: TargetQuota;
  readonly order: Pick<StartOrder, 'isStarting'>;
};

/** Brings load balancers in line with Services, one Service at a time. */
export class ServiceSync {
  readonly #deps: ControllerDeps;
  readonly #parts: ServiceParts;
  readonly #reports: OwnerEvents;
  readonly #planner: ServicePlanner;
  readonly #pools: PoolPlacer;
  readonly #status: StatusPublisher<ServiceHead>;
  readonly #sync: OwnerSync<ServiceHead>;

  constructor(deps: ControllerDeps, parts: ServiceParts) {
    const { services, nodes, quota, gates, published, memory } = parts;
    this.#deps = deps;
    this.#parts = parts;
    const reports = new OwnerEvents(deps.events, deps.log);
    const onContest = (owner: BalancerOwner, what: string): void => reports.contested(owner, what);
    const objects = new OwnerObjects({ ...deps, onContest }, SERVICE_OWNER);
    this.#reports = reports;
    this.#pools = new PoolPlacer(deps, { services, memory, quota, writer: objects, reports: this.#reports });
    this.#planner = new ServicePlanner(deps, { ...parts, pools: this.#pools });
    this.#status = new StatusPublisher(deps, objects, this.#reports);
    const shared = { objects, reports: this.#reports, gates, published, memory };
    this.#sync = new OwnerSync(deps, { ...shared, vpcId: () => nodes.vpcId });
  }

  /** The load balancers that Services share. */
  get pools(): PoolPlacer {
    return this.#pools;
  }

  /** Brings one Service nearer to what it asks for. @throws CloudError, KubeError, StepError when it is to be tried again */
  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const object = this.#parts.services.get(key);
    const head = object === undefined ? undefined : readServiceHead(object);
    const role = head === undefined ? 'ignore' : decideService(head, this.#deps.config.loadBalancerClass);
    const isDoubtful = object !== undefined && head !== undefined && role === 'ask';
    const marked = isDoubtful ? await this.#restoreMark(object, head, signal) : object;
    if (object === undefined || head === undefined || role === 'ignore' || marked === undefined) {
      this.#forget(key);
      return { kind: 'done' };
    }
    try {
      if (role === 'serve') return await this.#serve(object, head, signal);
      return await this.#release(marked, readServiceHead(marked), signal);
    } catch (error) {
      const report: OwnerUnit<ServiceHead>['report'] = (problems) => this.#reports.problems(head, problems);
      return this.#sync.fail({ key, report }, error, role === 'serve' ? role : 'release', signal);
    }
  }

  /** Writes the mark of a Service of which the cloud has something; undefined: it has nothing. @throws CloudError, KubeError */
  async #restoreMark(object: KubeObject, head: ServiceHead, signal: AbortSignal): Promise<KubeObject | undefined> {
    const { clusterId } = this.#deps.config;
    const unit = { object, head, listenerName: listenerNameOf(clusterId, head.uid, 'service') };
    return await this.#sync.restoreMark(unit, releaseSettingsOf(head, clusterId), this.#contextOf(head, signal));
  }

  async #serve(object: KubeObject, head: ServiceHead, signal: AbortSignal): Promise<ReconcileResult> {
    const { settings, notices: ofAnnotations, areTargetsKnown } = readAnnotations(head.annotations, head.labels);
    const context = this.#contextOf(head, signal);
    const { nodes, order, published } = this.#parts;
    const followsOnly = order.isStarting || ofAnnotations.some(({ blocks }) => blocks);
    if (head.annotations[DIRECT_ACCESS_ANNOTATION] !== undefined && nodes.vpcId !== undefined) published.need();
    const unit = this.#unitOf(object, head, settings);
    if (settings.mode === 'skip' || !areTargetsKnown) {
      await this.#sync.leave(unit, ofAnnotations, context);
      return { kind: 'again', afterMs: RESYNC_MS };
    }
    const { desired, ...plan } = await this.#planner.plan(object, head, settings, context);
    const whole: OwnerPlan = { ...plan, notices: [...ofAnnotations, ...plan.notices] };
    if (desired === undefined || followsOnly) return await this.#sync.apply(unit, whole, context);
    // Clients reach nothing there.
    const shown = desired.listeners.length > 0 ? unit : { ...unit, addressesOf: () => [], addressKey: 'shut' };
    return await this.#sync.apply(shown, { ...whole, desired }, context);
  }

  #unitOf(object: KubeObject, head: ServiceHead, settings: ServiceSettings): OwnerUnit<ServiceHead> {
    return {
      ...{ key: head.key, object, head },
      listenerName: listenerNameOf(this.#deps.config.clusterId, head.uid, 'service'),
      addressesOf: (balancer, clash) => planAddresses(balancer, settings, clash),
      addressKey: String(settings.preventLoopback),
      report: (problems) => this.#reports.problems(head, problems),
      publish: (written, addresses, problems, signal) => this.#status.publish(written, addresses, problems, signal),
    };
  }

  async #release(object: KubeObject, head: ServiceHead, signal: AbortSignal): Promise<ReconcileResult> {
    if (head.annotations[DIRECT_ACCESS_ANNOTATION] !== undefined) this.#parts.published.need();
    const { clusterId, loadBalancerClass } = this.#deps.config;
    const listenerName = listenerNameOf(clusterId, head.uid, 'service');
    const released = await this.#sync.release(
      { key: head.key, object, head, listenerName },
      // It may be a load balancer again.
      (current) =>
        ['release', 'ask'].includes(decideService(current, loadBalancerClass)) || current === head
          ? releaseSettingsOf(current, clusterId)
          : undefined,
      this.#contextOf(head, signal),
    );
    if (released.kind === 'again') return released;
    this.#pools.forget(head.uid);
    this.#forget(head.key);
    return { kind: 'done' };
  }

  #forget(key: string): void {
    this.#parts.followed.forget(key);
    this.#sync.forget(key);
    this.#sync.forgetOwner(key);
    this.#reports.forget(key);
  }

  #contextOf({ namespace: owner }: ServiceHead, signal: AbortSignal): CallContext {
    return { priority: 'warm', owner, signal, timeoutMs: this.#deps.config.cloudTimeoutMs };
  }
}

function releaseSettingsOf({ annotations, labels }: ServiceHead, clusterId: string): ReleaseSettings {
  const { settings } = readAnnotations(annotations, labels);
  const { pool } = settings;
  return pool === undefined ? settings : { ...settings, poolOwner: poolOwnerOf(clusterId, pool) };
}
