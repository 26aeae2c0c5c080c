import type { CallContext } from '../../cloud/cloud.ts';
import { INGRESS_FINALIZER } from '../../crd/names.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { INGRESSES } from '../../kube/resource-types.ts';
import type { BackendNodes } from '../backends/backend-nodes.ts';
import { type BalancerOwner, listenerNameOf } from '../balancers/balancer-owner.ts';
import type { ListenerMemory } from '../balancers/listener-memory.ts';
import { blocking, type Notice } from '../balancers/notice.ts';
import type { OwnerAddresses } from '../balancers/owner-addresses.ts';
import { readOwnerMark } from '../balancers/owner-mark.ts';
import type { OwnerGates } from '../balancers/owner-plan.ts';
import { OwnerEvents } from '../balancers/owner-reports.ts';
import { OwnerSync } from '../balancers/owner-sync.ts';
import type { OwnerUnit } from '../balancers/owner-unit.ts';
import { StatusPublisher } from '../balancers/publish-status.ts';
import type { StartOrder } from '../balancers/start-order.ts';
import type { TargetQuota } from '../balancers/target-quota.ts';
import { RESYNC_MS } from '../balancers/units-in-order.ts';
import { OwnerObjects, type OwnerType } from '../balancers/write-owner.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { decideIngress } from './decide-ingress.ts';
import { groupOf, isJoined } from './decide-membership.ts';
import { GroupSync } from './group-sync.ts';
import { hasBalancer } from './ingress-needs.ts';
import type { IngressPlanner } from './ingress-planner.ts';
import type { CertificateUploads } from './keep-certificates.ts';
import { namedIdsOf, noticesOfRefused, withRetry } from './place-certificates.ts';
import type { IngressPlan } from './plan-ingress.ts';
import { planAddresses, planUnit } from './plan-unit.ts';
import { INGRESS_LOAD_BALANCER_ANNOTATION, readAnnotations } from './read-annotations.ts';
import { type IngressHead, readIngressHead } from './read-ingress.ts';

const NO_UPLOADS: IngressPlan['uploads'] = new Map();

/** Ingresses as owners of load balancers. */
const INGRESS_OWNER: OwnerType<IngressHead> = {
  kind: 'ingress',
  resource: INGRESSES,
  finalizer: INGRESS_FINALIZER,
  idAnnotation: INGRESS_LOAD_BALANCER_ANNOTATION,
  headOf: readIngressHead,
  addressesOf: ({ addresses }) => addresses,
};

/** What Ingresses are kept with; some of it is shared with Services. */
type IngressParts = {
  readonly ingresses: Pick<Informer<KubeObject>, 'get' | 'values' | 'byIndex'>;
  readonly classes: Parameters<typeof decideIngress>[1];
  readonly nodes: BackendNodes;
  readonly gates: OwnerGates;
  readonly published: OwnerAddresses;
  readonly memory: ListenerMemory;
  readonly quota: TargetQuota;
  readonly order: Pick<StartOrder, 'isStarting'>;
  readonly planner: IngressPlanner;
  readonly certificates: Pick<CertificateUploads, 'ensure' | 'forget'>;
};

/** Brings load balancers in line with Ingresses: one unit at a time, an Ingress or a group of them. */
export class IngressSync {
  readonly #deps: ControllerDeps;
  readonly #parts: IngressParts;
  readonly #reports: OwnerEvents;
  readonly #status: StatusPublisher<IngressHead>;
  readonly #sync: OwnerSync<IngressHead>;
  readonly #groups: GroupSync;

  constructor(deps: ControllerDeps, parts: IngressParts) {
    const { nodes, gates, published, memory } = parts;
    this.#deps = deps;
    this.#parts = parts;
    const reports = new OwnerEvents(deps.events, deps.log, deps.metrics.ingressProblems);
    const onContest = (owner: BalancerOwner, what: string): void => reports.contested(owner, what);
    const objects = new OwnerObjects({ ...deps, onContest }, INGRESS_OWNER);
    this.#reports = reports;
    this.#status = new StatusPublisher(deps, objects, reports);
    this.#sync = new OwnerSync(deps, { objects, reports, gates, published, memory, vpcId: () => nodes.vpcId });
    this.#groups = new GroupSync(deps, { ...parts, objects, reports, status: this.#status, sync: this.#sync });
  }

  /** Brings one unit nearer to what it asks for. @throws CloudError, KubeError, StepError when it is to be tried again */
  async reconcile(unitKey: string, signal: AbortSignal): Promise<ReconcileResult> {
    const group = groupOf(unitKey);
    if (group !== undefined) return await this.#groups.reconcile(unitKey, group, signal);
    const object = this.#parts.ingresses.get(unitKey);
    const head = object === undefined ? undefined : readIngressHead(object);
    if (object === undefined || head === undefined) {
      this.#forget(unitKey);
      this.#reports.forget(unitKey);
      return { kind: 'done' };
    }
    // Its group ends that first.
    if (isJoined(head)) return { kind: 'done' };
    const { role, notice } = decideIngress(head, this.#parts.classes);
    const report: OwnerUnit<IngressHead>['report'] = (problems) => this.#reports.problems(head, problems);
    const ofClass = notice === undefined ? [] : [notice];
    if (role === 'ignore' && !hasBalancer(object)) {
      this.#forget(unitKey);
      report(ofClass);
      return { kind: 'done' };
    }
    try {
      if (role === 'release') return await this.#release(object, head, signal);
      return await this.#serve(object, head, { isOurs: role === 'serve', ofClass }, signal);
    } catch (error) {
      return this.#sync.fail({ key: unitKey, report }, error, role === 'release' ? role : 'serve', signal);
    }
  }

  /** @param isOurs whether it has a class of ours; otherwise the targets of the load balancer that it has follow, and nothing else */
  async #serve(
    object: KubeObject,
    head: IngressHead,
    { isOurs, ofClass }: { readonly isOurs: boolean; readonly ofClass: readonly Notice[] },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { planner, certificates, published, nodes, quota, order } = this.#parts;
    const { settings, notices: ofAnnotations, areTargetsKnown } = readAnnotations(head.annotations);
    const context = this.#contextOf(head, signal);
    if (settings.directAccess !== undefined && nodes.vpcId !== undefined) published.need();
    const unit = this.#unitOf(object, head);
    const notices = [...ofClass, ...ofAnnotations, ...refuseGroup(head)];
    const followsOnly = order.isStarting || !isOurs || notices.some(({ blocks }) => blocks);
    if (settings.mode === 'skip' || !areTargetsKnown) {
      planner.forget(head.key);
      await this.#sync.leave(unit, notices, context);
      return { kind: 'again', afterMs: RESYNC_MS };
    }
    const plan = await planner.plan(object, head, settings, context);
    const ensured = await certificates.ensure(
      head.key,
      isOurs && !order.isStarting ? plan.uploads : NO_UPLOADS,
      context,
      {
        namespaceOf: () => head.namespace,
        named: [namedIdsOf(plan.listeners ?? [])],
      },
    );
    const maxRules = await quota.rules(context);
    const owned = planUnit({
      plan,
      ...{ head, settings, ids: ensured.ids, refused: ensured.refused, listenerName: unit.listenerName },
      ...(maxRules === undefined ? {} : { maxRules }),
    });
    const ofNamed = noticesOfRefused(plan.listeners ?? [], ensured.refused);
    const all = [...notices, ...plan.notices, ...owned.notices, ...ensured.notices, ...ofNamed];
    const { desired, ...rest } = owned;
    const whole = withRetry({ ...rest, notices: all }, ensured);
    return await this.#sync.apply(unit, desired === undefined || followsOnly ? whole : { ...whole, desired }, context);
  }

  #unitOf(object: KubeObject, head: IngressHead): OwnerUnit<IngressHead> {
    return {
      ...{ key: head.key, object, head },
      listenerName: listenerNameOf(this.#deps.config.clusterId, head.uid, 'ingress'),
      addressesOf: planAddresses,
      addressKey: '',
      report: (problems) => this.#reports.problems(head, problems),
      publish: (written, addresses, problems, signal) => this.#status.publish(written, addresses, problems, signal),
    };
  }

  async #release(object: KubeObject, head: IngressHead, signal: AbortSignal): Promise<ReconcileResult> {
    const { settings } = readAnnotations(head.annotations);
    if (settings.directAccess !== undefined) this.#parts.published.need();
    const listenerName = listenerNameOf(this.#deps.config.clusterId, head.uid, 'ingress');
    const released = await this.#sync.release(
      { key: head.key, object, head, listenerName },
      // It may be ours again.
      (current) =>
        current === head || decideIngress(current, this.#parts.classes).role === 'release'
          ? readAnnotations(current.annotations).settings
          : undefined,
      this.#contextOf(head, signal),
    );
    if (released.kind === 'again') return released;
    this.#forget(head.key);
    this.#reports.forget(head.key);
    return released;
  }

  /** Forgets an Ingress, but for what is reported. */
  #forget(key: string): void {
    this.#parts.planner.forget(key);
    this.#parts.certificates.forget(key);
    this.#sync.forget(key);
    this.#sync.forgetOwner(key);
  }

  #contextOf({ namespace: owner }: IngressHead, signal: AbortSignal): CallContext {
    return { priority: 'warm', owner, signal, timeoutMs: this.#deps.config.cloudTimeoutMs };
  }
}

/** An Ingress with a load balancer does not join a group: its listeners have another name. */
function refuseGroup(head: IngressHead): readonly Notice[] {
  const { enableGroup } = readAnnotations(head.annotations).settings;
  if (enableGroup !== true) return [];
  const { loadBalancerId } = readOwnerMark(head);
  const message =
    loadBalancerId === undefined
      ? 'the annotation ingress.cloud.tencent.com/enable-group needs kubernetes.io/ingress.existLbId, the load balancer that is shared; add it, or remove enable-group'
      : `the annotation ingress.cloud.tencent.com/enable-group is read when an Ingress is created, and this one has ${loadBalancerId} for itself; create it again, or remove the annotation`;
  return [blocking(loadBalancerId === undefined ? 'AnnotationInvalid' : 'ImmutableChangeRefused', message)];
}
