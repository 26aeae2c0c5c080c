import type { CallContext } from '../../cloud/cloud.ts';
import { DIRECT_ACCESS_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { ConfigError } from '../../runtime/decode.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { BackendNodes } from './backend-nodes.ts';
import type { DesiredListener, DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { EndpointSlice } from './endpoint-slice.ts';
import type { PodFollower } from './follow-pods.ts';
import { blocking, type Notice } from './notice.ts';
import { planLoadBalancer } from './plan-load-balancer.ts';
import type { PodFacts, UnboundPods } from './plan-pod-targets.ts';
import { readServiceSpec, type ServiceHead } from './read-service.ts';
import type { ServiceSettings } from './served-annotations.ts';
import { TargetQuota } from './target-quota.ts';

/** What is desired of a Service; without it nothing is changed. */
export type ServicePlan = {
  readonly desired?: DesiredLoadBalancer;
  readonly notices: readonly Notice[];
  /** What its listeners would be, also without `desired`; absent: that is not known. */
  readonly listeners?: readonly DesiredListener[];
  /** Present where Pods are the backends. */
  readonly unbound?: UnboundPods;
  /** When it is planned again, though nothing changes. */
  readonly afterMs?: number;
};

/** When the next Pod that a slice names counts as gone; infinite: none does. */
type AbsentPods = { nextMs: number };

/** Rights are missing: they may be granted. */
const FORBIDDEN_MS = 60_000;
/** Pods are being read. */
const STARTING_MS = 1_000;

/** Plans load balancers of what the caches have: Nodes, or the Pods of Services with direct access. */
export class ServicePlanner {
  readonly #deps: ControllerDeps;
  readonly #nodes: BackendNodes;
  readonly #pods: PodFollower;
  readonly #quota: TargetQuota;

  constructor(deps: ControllerDeps, nodes: BackendNodes, pods: PodFollower) {
    this.#deps = deps;
    this.#nodes = nodes;
    this.#pods = pods;
    this.#quota = new TargetQuota(deps);
  }

  /** Plans the load balancer of one Service. What is wrong with it is a notice. */
  async plan(
    object: KubeObject,
    head: ServiceHead,
    settings: ServiceSettings,
    context: CallContext,
  ): Promise<ServicePlan> {
    const { vpcId } = this.#nodes;
    if (vpcId === undefined) {
      const message =
        'the VPC of the cluster is not known; set --vpc-id, or let cloud-node-controller find the instances of Nodes';
      return { notices: [blocking('ServiceRefused', message)] };
    }
    if (settings.directAccess !== true) this.#pods.forget(head.key);
    const endpoints = settings.directAccess === true ? this.#pods.endpointsOf(head.key) : undefined;
    if (endpoints?.kind === 'starting') return { notices: [], afterMs: STARTING_MS };
    if (endpoints?.kind === 'forbidden') {
      const message = `Pods cannot be bound: tke-cloud-controller-manager may not ${endpoints.missing.join(', ')}; grant it, as docs/cloud-controller-manager.md says, or write "false" into the annotation ${DIRECT_ACCESS_ANNOTATION}. Nothing of the load balancer is changed`;
      return { notices: [blocking('DirectAccessImpossible', message)], afterMs: FORBIDDEN_MS };
    }
    try {
      const spec = readServiceSpec(object);
      const maxTargets = await this.#quota.read(context);
      const absent: AbsentPods = { nextMs: Number.POSITIVE_INFINITY };
      const plan = planLoadBalancer({
        service: head,
        spec,
        settings,
        nodes: this.#nodes.backendsIn(vpcId),
        ...(endpoints === undefined ? {} : { pods: this.#podFacts(endpoints.slices, absent) }),
        clusterId: this.#deps.config.clusterId,
        vpcId,
        ...(maxTargets === undefined ? {} : { maxTargets }),
      });
      return absent.nextMs === Number.POSITIVE_INFINITY ? plan : { ...plan, afterMs: absent.nextMs };
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return { notices: [blocking('ServiceInvalid', error.message)] };
    }
  }

  #podFacts(slices: readonly EndpointSlice[], absent: AbsentPods): PodFacts {
    return {
      slices,
      podOf: (key) => this.#pods.podOf(key),
      hasEnded: (uid) => this.#pods.hasEnded(uid),
      isGone: (key) => {
        const leftMs = this.#pods.mayAppearMs(key);
        if (leftMs > 0) absent.nextMs = Math.min(absent.nextMs, leftMs);
        return leftMs === 0;
      },
      nodeOf: (name) => this.#nodes.nodeOf(name),
      keepsRoutes: this.#deps.config.routes !== 'none',
    };
  }
}
