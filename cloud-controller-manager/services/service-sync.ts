import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { findMissingRights } from '../../kube/ask-rights.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { ConfigError } from '../../runtime/decode.ts';
import type { CcmNode } from '../ccm-node.ts';
import type { ControllerDeps } from '../controller-deps.ts';
import { readCloudNode } from '../nodes/cloud-node.ts';
import { findVpc, readSeen } from '../nodes/seen-instance.ts';
import { type BackendNode, decideBackendNode } from './decide-backend-node.ts';
import { decideService } from './decide-service.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { BalancerKeeper } from './keep-balancer.ts';
import { blocking, type Notice } from './notice.ts';
import { planIngress } from './plan-ingress.ts';
import { listenerNameOf, planLoadBalancer } from './plan-load-balancer.ts';
import { readAnnotations } from './read-annotations.ts';
import { readRecord } from './read-record.ts';
import { type Ingress, readServiceHead, readServiceSpec, type ServiceHead } from './read-service.ts';
import { releaseBalancer } from './release-balancer.ts';
import type { ServiceSettings } from './served-annotations.ts';
import { ServiceReports } from './service-reports.ts';
import { ServiceWriter } from './write-service.ts';

/** How often a load balancer is compared with its Service, though nothing has changed. */
const RESYNC_MS = 600_000;
/** After a refusal that the same request would get again. */
const REFUSED_MS = 60_000;
/** The cache has not caught up with a write. */
const CONFLICT_MS = 1_000;
const QUOTA_AGE_MS = 600_000;
const ASK_RIGHT_MS = 60_000;

/** What was in order when it was last compared. */
type Settled = {
  readonly desired: string;
  readonly loadBalancerId: string;
  readonly ingress: readonly Ingress[];
  readonly untilMs: number;
};

/** Brings load balancers in line with Services, one Service at a time. */
export class ServiceSync {
  readonly #deps: ControllerDeps;
  readonly #services: Pick<Informer<KubeObject>, 'get'>;
  readonly #writer: ServiceWriter;
  readonly #reports: ServiceReports;
  readonly #keeper: BalancerKeeper;
  readonly #settled = new Map<string, Settled>();
  /** By Service that is released: since when nothing of it is found; monotonic milliseconds. */
  readonly #absentSinceMs = new Map<string, number>();
  #backends: { readonly vpcId: string | undefined; readonly nodes: readonly BackendNode[] } | undefined;
  #vpc: { readonly id: string | undefined } | undefined;
  #quota: Promise<number | undefined> = Promise.resolve(undefined);
  #quotaAtMs = Number.NEGATIVE_INFINITY;
  #statusRight: Promise<boolean> = Promise.resolve(false);
  #askedRightAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: ControllerDeps, services: Pick<Informer<KubeObject>, 'get'>) {
    this.#deps = deps;
    this.#services = services;
    this.#writer = new ServiceWriter(deps.kube);
    this.#reports = new ServiceReports(deps.events, deps.log);
    this.#keeper = new BalancerKeeper(deps, this.#writer, this.#reports);
  }

  /** Notes that Nodes have changed what load balancers depend on. */
  nodesChanged(): void {
    this.#backends = undefined;
    this.#vpc = undefined;
  }

  /** Withdraws what is reported. */
  close(): void {
    this.#deps.metrics.problems.report(STATUS_PROBLEM, []);
  }

  /** Brings one Service nearer to what it asks for. @throws CloudError, KubeError, StepError when it is to be tried again */
  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const object = this.#services.get(key);
    const head = object === undefined ? undefined : readServiceHead(object);
    const role = head === undefined ? 'ignore' : decideService(head, this.#deps.config.loadBalancerClass);
    if (object === undefined || head === undefined || role === 'ignore') {
      this.#forget(key);
      return { kind: 'done' };
    }
    try {
      return role === 'serve' ? await this.#serve(object, head, signal) : await this.#release(object, head, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      if (isKubeError(error, 'CONFLICT', 'NOT_FOUND')) return { kind: 'again', afterMs: CONFLICT_MS };
      const reason = role === 'serve' ? 'SyncLoadBalancerFailed' : 'DeleteLoadBalancerFailed';
      this.#settled.delete(key);
      this.#reports.problems(head, [{ reason, message: error instanceof Error ? error.message : String(error) }]);
      if (!isCloudError(error, 'never', 'quota', 'credentials')) throw error;
      return { kind: 'again', afterMs: Math.max(error.afterMs, REFUSED_MS) };
    }
  }

  async #serve(object: KubeObject, head: ServiceHead, signal: AbortSignal): Promise<ReconcileResult> {
    const { settings, notices: ofAnnotations } = readAnnotations(head.annotations, head.labels);
    const vpcId = this.#vpcId();
    const later: ReconcileResult = { kind: 'again', afterMs: RESYNC_MS };
    if (settings.mode === 'skip' || ofAnnotations.some(({ blocks }) => blocks)) {
      this.#reports.problems(head, ofAnnotations);
      return later;
    }
    const context = this.#contextOf(head, signal);
    const plan = await this.#plan(object, head, settings, vpcId, context);
    const notices = [...ofAnnotations, ...plan.notices];
    if (plan.desired === undefined || vpcId === undefined) {
      this.#reports.problems(head, notices);
      return later;
    }
    const text = JSON.stringify([plan.desired, settings.preventLoopback]);
    const settled = this.#settled.get(head.key);
    const isRecorded = readRecord(head).loadBalancerId === settled?.loadBalancerId && head.hasFinalizer;
    if (settled?.desired === text && isRecorded && this.#deps.clock.monotonicMs() < settled.untilMs) {
      await this.#publish(object, head, settled.ingress, notices, signal);
      return { kind: 'again', afterMs: settled.untilMs - this.#deps.clock.monotonicMs() };
    }
    const kept = await this.#keeper.keep(object, plan.desired, vpcId, context);
    if (kept.kind === 'again') {
      this.#settled.delete(head.key);
      this.#reports.problems(head, [...notices, ...kept.notices]);
      return { kind: 'again', afterMs: kept.afterMs };
    }
    const ingress = planIngress(kept.balancer, settings);
    await this.#publish(kept.object, head, ingress, [...notices, ...kept.notices], signal);
    const afterMs = Math.min(RESYNC_MS, kept.drainMs);
    const untilMs = this.#deps.clock.monotonicMs() + afterMs;
    this.#settled.set(head.key, { desired: text, loadBalancerId: kept.balancer.loadBalancerId, ingress, untilMs });
    return { kind: 'again', afterMs };
  }

  async #plan(
    object: KubeObject,
    head: ServiceHead,
    settings: ServiceSettings,
    vpcId: string | undefined,
    context: CallContext,
  ): Promise<{ readonly desired?: DesiredLoadBalancer; readonly notices: readonly Notice[] }> {
    if (vpcId === undefined) {
      const message =
        'the VPC of the cluster is not known; set --vpc-id, or let cloud-node-controller find the instances of Nodes';
      return { notices: [blocking('ServiceRefused', message)] };
    }
    try {
      const spec = readServiceSpec(object);
      const maxTargets = await this.#targetQuota(context);
      return planLoadBalancer({
        service: head,
        spec,
        settings,
        nodes: this.#backendsIn(vpcId),
        clusterId: this.#deps.config.clusterId,
        vpcId,
        ...(maxTargets === undefined ? {} : { maxTargets }),
      });
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return { notices: [blocking('ServiceInvalid', error.message)] };
    }
  }

  /** Writes where clients reach the Service. The published role has no right to its status: then an annotation has to do. */
  async #publish(
    object: KubeObject,
    head: ServiceHead,
    ingress: readonly Ingress[],
    notices: readonly Notice[],
    signal: AbortSignal,
  ): Promise<void> {
    const address = ingress.map(({ ip, hostname }) => ip ?? hostname).join();
    const written = await this.#writer.writeAddress(object, address, signal);
    if (await this.#hasStatusRight(signal)) {
      await this.#writer.writeStatus(written, ingress, signal);
      this.#reports.problems(head, notices);
      return;
    }
    const message = `the status of the Service stays empty: tke-cloud-controller-manager may not patch services/status. Its load balancer works; the address is ${address}, in the annotation tke.cloud.tencent.com/load-balancer-address. Grant the right, as docs/cloud-controller-manager.md says`;
    this.#reports.problems(head, [...notices, { reason: 'StatusForbidden', message }]);
  }

  async #release(object: KubeObject, head: ServiceHead, signal: AbortSignal): Promise<ReconcileResult> {
    this.#settled.delete(head.key);
    const { clusterId, loadBalancerClass } = this.#deps.config;
    const fresh = await this.#writer.read(head, signal);
    // It may be a load balancer again.
    if (fresh !== undefined && decideService(readServiceHead(fresh), loadBalancerClass) !== 'release')
      return { kind: 'again', afterMs: CONFLICT_MS };
    const released = await releaseBalancer(
      { cloud: this.#deps.cloud, clock: this.#deps.clock, reports: this.#reports, absentSinceMs: this.#absentSinceMs },
      { object: fresh ?? object, clusterId, listenerName: listenerNameOf({ clusterId, service: head }) },
      this.#contextOf(head, signal),
    );
    if (released.kind === 'again') return released;
    await this.#writer.forget(fresh ?? object, signal);
    this.#forget(head.key);
    return { kind: 'done' };
  }

  #forget(key: string): void {
    this.#settled.delete(key);
    this.#absentSinceMs.delete(key);
    this.#reports.forget(key);
  }

  #contextOf({ key: owner }: ServiceHead, signal: AbortSignal): CallContext {
    return { priority: 'warm', owner, signal, timeoutMs: this.#deps.config.cloudTimeoutMs };
  }

  #vpcId(): string | undefined {
    const { config, nodes } = this.#deps;
    this.#vpc ??= { id: findVpc(config.vpcId, seenIn(nodes.values())) };
    return this.#vpc.id;
  }

  #backendsIn(vpcId: string): readonly BackendNode[] {
    if (this.#backends?.vpcId === vpcId) return this.#backends.nodes;
    const roles = [...this.#deps.nodes.values()].map((node) => decideBackendNode(readCloudNode(node), vpcId));
    const nodes = roles.flatMap((role) => (role.kind === 'backend' ? [role.backend] : []));
    this.#backends = { vpcId, nodes };
    return nodes;
  }

  /** Services that are worked on at once share one question. */
  async #targetQuota(context: CallContext): Promise<number | undefined> {
    const { clock } = this.#deps;
    if (clock.monotonicMs() - this.#quotaAtMs >= QUOTA_AGE_MS) {
      this.#quotaAtMs = clock.monotonicMs();
      this.#quota = this.#readQuota(context);
    }
    return await this.#quota;
  }

  async #readQuota(context: CallContext): Promise<number | undefined> {
    const { cloud, log } = this.#deps;
    try {
      return (await cloud.loadBalancers.quotas(context)).targets?.limit;
    } catch (error) {
      // Without it the cloud refuses what is too many.
      log.warn('the quotas of load balancers are not known', { error });
      return undefined;
    }
  }

  /** As for the quota. A right that is granted stays; one that is missing is asked for again. */
  async #hasStatusRight(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#deps;
    if (!(await this.#statusRight) && clock.monotonicMs() - this.#askedRightAtMs >= ASK_RIGHT_MS) {
      this.#askedRightAtMs = clock.monotonicMs();
      this.#statusRight = this.#askStatusRight(signal);
    }
    return await this.#statusRight;
  }

  async #askStatusRight(signal: AbortSignal): Promise<boolean> {
    const { kube, metrics, log } = this.#deps;
    const right = { verb: 'patch', resource: 'services', subresource: 'status' };
    try {
      const missing = await findMissingRights(kube, [right], signal);
      const problem = { kind: 'Forbidden', name: 'service-lb-controller: patch services/status' };
      metrics.problems.report(STATUS_PROBLEM, missing.length === 0 ? [] : [problem]);
      return missing.length === 0;
    } catch (error) {
      // The write itself shows what is missing.
      log.warn('the API server does not say whether the status of Services may be written', { error });
      return true;
    }
  }
}

const STATUS_PROBLEM = 'services/status';

function* seenIn(nodes: Iterable<CcmNode>): Iterable<string> {
  for (const node of nodes) {
    const seen = readSeen(readCloudNode(node));
    if (seen !== undefined) yield seen.vpcId;
  }
}
