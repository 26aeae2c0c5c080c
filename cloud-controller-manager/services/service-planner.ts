import type { CallContext } from '../../cloud/cloud.ts';
import { DIRECT_ACCESS_ANNOTATION, SERVICE_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { Slices } from '../../runtime/slices.ts';
import type { BackendNodes } from '../backends/backend-nodes.ts';
import type { FollowedServices, PodFollower } from '../backends/follow-pods.ts';
import { PodFinder, refuseForbidden } from '../balancers/find-pods.ts';
import { blocking, type Notice, remark } from '../balancers/notice.ts';
import { readOwnerMark } from '../balancers/owner-mark.ts';
import type { OwnerPlan } from '../balancers/owner-plan.ts';
import type { TargetQuota } from '../balancers/target-quota.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { VPC_CURE } from '../nodes/decide-vpc.ts';
import type { ConfigsOfOwners } from '../service-configs/configs-of-owners.ts';
import { planLoadBalancer, planPoolSpec } from './plan-load-balancer.ts';
import { planSourceRanges } from './plan-source-ranges.ts';
import type { PoolPlacer } from './pool-placer.ts';
import { readServiceHead, readServiceSpec, type ServiceHead, type ServiceSpec } from './read-service.ts';
import type { ServiceSettings } from './served-annotations.ts';

/** What the plan of a Service is made with. */
type PlannerParts = {
  readonly nodes: BackendNodes;
  readonly pods: PodFollower;
  readonly followed: FollowedServices;
  readonly configs: Pick<ConfigsOfOwners, 'find'>;
  readonly pools: PoolPlacer;
  readonly quota: TargetQuota;
};

/** Where a Service is placed. */
type Place =
  | Extract<Awaited<ReturnType<PoolPlacer['place']>>, { readonly kind: 'placed' | 'again' }>
  | { readonly kind: 'own' }
  | { readonly kind: 'refused'; readonly notice?: Notice };

/** Rights are missing: they may be granted. */
const FORBIDDEN_MS = 60_000;
/** Pods are being read. */
const STARTING_MS = 1_000;

/** Plans load balancers of what the caches have: Nodes, or the Pods of Services with direct access. */
export class ServicePlanner {
  readonly #deps: ControllerDeps;
  readonly #parts: PlannerParts;
  readonly #slices: Slices;

  constructor(deps: ControllerDeps, parts: PlannerParts) {
    this.#deps = deps;
    this.#parts = parts;
    this.#slices = new Slices(deps.clock);
  }

  /** Plans the load balancer of one Service. What is wrong with it is a notice. */
  async plan(
    object: KubeObject,
    head: ServiceHead,
    settings: ServiceSettings,
    context: CallContext,
  ): Promise<OwnerPlan> {
    const { nodes, pods, followed, configs, quota } = this.#parts;
    const { vpcId } = nodes;
    if (vpcId === undefined) {
      const message = `the VPC of the cluster is not known; ${VPC_CURE}`;
      return { notices: [blocking('ServiceRefused', message)] };
    }
    if (settings.directAccess !== true) followed.forget(head.key);
    const endpoints = settings.directAccess === true ? followed.endpointsOf(head.key) : undefined;
    if (endpoints?.kind === 'starting') return { notices: [], afterMs: STARTING_MS };
    if (endpoints?.kind === 'forbidden') {
      return { notices: [refuseForbidden(endpoints.missing, DIRECT_ACCESS_ANNOTATION)], afterMs: FORBIDDEN_MS };
    }
    try {
      const spec = readServiceSpec(object);
      const configured = await configs.find({ ...settings, ...head, listeners: listenersOf(spec) }, context.signal);
      if (configured.kind === 'starting') return { notices: [], afterMs: STARTING_MS };
      const found = new PodFinder(this.#deps.config, pods, nodes);
      const maxTargets = await quota.read(context);
      const facts = {
        service: head,
        spec,
        settings,
        nodes: nodes.backendsIn(vpcId),
        ...(endpoints === undefined ? {} : { pods: found.of(endpoints.slices) }),
        ...configFactOf(configured),
        clusterId: this.#deps.config.clusterId,
        vpcId,
        ...(maxTargets === undefined ? {} : { maxTargets }),
      };
      const place = await this.#place(object, spec, settings, facts, context);
      if (place.kind === 'again') return { notices: [], afterMs: STARTING_MS };
      await this.#slices.next();
      const placed = planLoadBalancer({
        ...facts,
        ...(place.kind === 'placed' ? { placement: place } : {}),
      });
      const plan = place.kind === 'refused' ? refuse(placed, place.notice) : placed;
      const notices =
        configured.kind === 'unknown'
          ? [
              ...plan.notices,
              remark('ServiceConfigUnused', `${configured.why}. Listeners keep the settings that they have`),
            ]
          : plan.notices;
      const planned = { ...plan, notices };
      const writtenMs = configured.kind === 'known' ? configured.afterMs : undefined;
      const nextMs = Math.min(found.nextMs, writtenMs ?? Number.POSITIVE_INFINITY);
      return nextMs === Number.POSITIVE_INFINITY ? planned : { ...planned, afterMs: nextMs };
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return { notices: [blocking('ServiceInvalid', error.message)] };
    }
  }

  /** Finds the place of a Service on a load balancer of its pool. `own`: it shares none. */
  async #place(
    object: KubeObject,
    spec: ServiceSpec,
    { pool, poolPorts, existedLbId }: ServiceSettings,
    facts: Parameters<typeof planPoolSpec>[0],
    context: CallContext,
  ): Promise<Place> {
    if (pool === undefined) return { kind: 'own' };
    if (existedLbId !== undefined) {
      const message = `the annotations ${SERVICE_ANNOTATION.pool} and service.kubernetes.io/tke-existed-lbid contradict each other; remove one of them`;
      return { kind: 'refused', notice: blocking('AnnotationInvalid', message) };
    }
    const { value } = planPoolSpec(facts, pool);
    // The plan says what is wrong.
    if (value === undefined) return { kind: 'own' };
    const { loadBalancerId: markedId } = readOwnerMark(readServiceHead(object));
    if (markedId === undefined && planSourceRanges(spec, facts.settings).isShut) return { kind: 'refused' };
    const user = { object, spec: value, listeners: listenersOf(spec), allots: poolPorts === 'allotted' };
    const place = await this.#parts.pools.place(user, context);
    if (place.kind === 'placed' || place.kind === 'again') return place;
    const { kind, loadBalancerId } = place;
    const notice =
      kind === 'full'
        ? blocking(
            'ServiceRefused',
            `${loadBalancerId} of the pool ${pool} has too few listeners left for the ports of the Service; use fewer ports, or create the Service again`,
          )
        : blocking(
            'ImmutableChangeRefused',
            `the Service has the load balancer ${loadBalancerId}, which is not of the pool ${pool}; remove the annotation ${SERVICE_ANNOTATION.pool}, or create the Service again`,
          );
    return { kind: 'refused', notice };
  }
}

function configFactOf(
  configured: Exclude<Awaited<ReturnType<ConfigsOfOwners['find']>>, { readonly kind: 'starting' }>,
): Pick<Parameters<typeof planLoadBalancer>[0], 'config'> {
  if (configured.kind === 'unknown') return { config: 'unknown' };
  return configured.config === undefined ? {} : { config: configured.config };
}

function listenersOf({ ports }: ServiceSpec): readonly { readonly protocol: 'TCP' | 'UDP'; readonly port: number }[] {
  return ports.flatMap(({ protocol, port }) => (protocol === 'SCTP' ? [] : [{ protocol, port }]));
}

/** A plan of which nothing is done, for one more reason, or for those that it has. */
function refuse({ desired: _, notices, ...plan }: ReturnType<typeof planLoadBalancer>, notice?: Notice) {
  return { ...plan, notices: notice === undefined ? notices : [...notices, notice] };
}
