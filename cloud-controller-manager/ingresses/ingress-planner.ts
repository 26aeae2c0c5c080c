import type { CallContext } from '../../cloud/cloud.ts';
import { INGRESS_DIRECT_ACCESS_ANNOTATION } from '../../crd/foreign-names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { ConfigError, describeValue } from '../../runtime/decode.ts';
import { Slices } from '../../runtime/slices.ts';
import type { BackendNodes } from '../backends/backend-nodes.ts';
import type { FollowedServices, PodFollower } from '../backends/follow-pods.ts';
import { PodFinder, refuseForbidden } from '../balancers/find-pods.ts';
import { blocking, type Notice, remark } from '../balancers/notice.ts';
import type { TargetQuota } from '../balancers/target-quota.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { VPC_CURE } from '../nodes/decide-vpc.ts';
import type { ConfigsOfOwners } from '../service-configs/configs-of-owners.ts';
import { readBackendPorts } from '../services/read-ports.ts';
import { backendsOf } from './backend-services.ts';
import type { OwnCertificate } from './own-certificate.ts';
import type { SecretFacts } from './plan-certificates.ts';
import { type IngressPlan, planIngress, withConfig } from './plan-ingress.ts';
import type { IngressHead, IngressSpec } from './read-ingress.ts';
import { readIngressSpec } from './read-ingress.ts';
import type { SecretReader } from './read-secrets.ts';
import type { IngressSettings } from './served-annotations.ts';

/** What the plan of an Ingress is made with. */
type PlannerParts = {
  readonly services: { readonly get: (key: string) => KubeObject | undefined };
  readonly nodes: BackendNodes;
  readonly pods: PodFollower;
  readonly followed: FollowedServices;
  readonly secrets: Pick<SecretReader, 'secretsOf' | 'isInLine' | 'forget'>;
  readonly configs: Pick<ConfigsOfOwners, 'find'>;
  readonly quota: TargetQuota;
};

/** Rights are missing: they may be granted. */
const FORBIDDEN_MS = 60_000;
/** Pods or Secrets are being read. */
const STARTING_MS = 1_000;
/** A Secret that is not known for so long is planned without. */
const SECRET_MS = 10_000;
/** After so long its Ingress has an event. */
const UNREAD_MS = 180_000;
const SHOWN_SECRETS = 3;
const NO_UPLOADS = new Map<string, OwnCertificate>();

/** Plans rules of Ingresses of what the caches have: Services, Nodes, Pods and Secrets. */
export class IngressPlanner {
  readonly #deps: ControllerDeps;
  readonly #parts: PlannerParts;
  readonly #slices: Slices;
  /** By Ingress with direct access: the Services whose endpoints it needs. */
  readonly #followed = new Map<string, ReadonlySet<string>>();
  /** By Ingress: since when a Secret of it is not known; monotonic milliseconds. */
  readonly #unknownSinceMs = new Map<string, number>();

  constructor(deps: ControllerDeps, parts: PlannerParts) {
    this.#deps = deps;
    this.#parts = parts;
    this.#slices = new Slices(deps.clock);
  }

  /** Plans one Ingress. What is wrong with it is a notice. */
  async plan(
    object: KubeObject,
    head: IngressHead,
    settings: IngressSettings,
    context: CallContext,
  ): Promise<IngressPlan> {
    const { vpcId } = this.#parts.nodes;
    if (vpcId === undefined)
      return refused(blocking('IngressRefused', `the VPC of the cluster is not known; ${VPC_CURE}`));
    try {
      return await this.#plan(readIngressSpec(object), object, head, settings, vpcId, context);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return refused(blocking('IngressInvalid', error.message));
    }
  }

  /** Forgets an Ingress. */
  forget(key: string): void {
    this.#unknownSinceMs.delete(key);
    this.#follow(key, new Set());
    this.#parts.secrets.forget(key);
  }

  async #plan(
    spec: IngressSpec,
    object: KubeObject,
    head: IngressHead,
    settings: IngressSettings,
    vpcId: string,
    context: CallContext,
  ): Promise<IngressPlan> {
    const { nodes, pods, quota, services } = this.#parts;
    const { clock, config } = this.#deps;
    const isDirect = settings.directAccess === true;
    const names = new Set(backendsOf(spec, settings).map(({ service }) => service));
    const secretOf = this.#secretsOf(object, head, spec);
    const endpoints = this.#endpointsOf(head, isDirect ? names : new Set());
    if (endpoints.kind === 'starting' || this.#isWaiting(head, spec, secretOf))
      return { uploads: NO_UPLOADS, notices: [], afterMs: STARTING_MS };
    if (endpoints.kind === 'forbidden') {
      const notice = refuseForbidden(endpoints.missing, INGRESS_DIRECT_ACCESS_ANNOTATION);
      return { ...refused(notice), afterMs: FORBIDDEN_MS };
    }
    const maxTargets = await quota.read(context);
    const found = new PodFinder(config, pods, nodes);
    const portsOf = (service: string) => {
      const its = services.get(`${head.namespace}/${service}`);
      return its === undefined ? 'missing' : readBackendPorts(its);
    };
    await this.#slices.next();
    const plan = planIngress({
      ...{ head, spec, settings, secretOf, portsOf, vpcId, clusterId: config.clusterId, nowMs: clock.nowMs() },
      podsOf: (service) => found.of(endpoints.slicesOf(service)),
      nodes: isDirect ? [] : nodes.backendsIn(vpcId),
      ...(maxTargets === undefined ? {} : { maxTargets }),
    });
    const configured = await this.#configure(plan, head, settings, context);
    const unread = this.#unreadOf(head, spec, secretOf);
    const nextMs = Math.min(found.nextMs, unread.afterMs, configured.afterMs ?? Number.POSITIVE_INFINITY);
    const whole = { ...configured, notices: [...configured.notices, ...unread.notices] };
    return nextMs === Number.POSITIVE_INFINITY ? whole : { ...whole, afterMs: nextMs };
  }

  /** Puts the TkeServiceConfig of an Ingress over its plan; one of which nothing is done needs none. */
  async #configure(
    plan: IngressPlan,
    head: IngressHead,
    settings: IngressSettings,
    { signal }: CallContext,
  ): Promise<IngressPlan> {
    if (plan.desired === undefined) return plan;
    const { listeners } = plan.desired;
    const configured = await this.#parts.configs.find({ ...settings, ...head, listeners }, signal);
    if (configured.kind === 'starting') return { uploads: NO_UPLOADS, notices: [], afterMs: STARTING_MS };
    const whole = withConfig(plan, configured);
    const writtenMs = configured.kind === 'known' ? configured.afterMs : undefined;
    if (writtenMs === undefined) return whole;
    return { ...whole, afterMs: Math.min(writtenMs, whole.afterMs ?? Number.POSITIVE_INFINITY) };
  }

  #secretsOf(object: KubeObject, head: IngressHead, spec: IngressSpec): (name: string) => SecretFacts {
    const { generation } = object.metadata;
    const user = { key: head.key, namespace: head.namespace, generation: Number(generation ?? 0) };
    return this.#parts.secrets.secretsOf(
      user,
      spec.tls.map(({ secretName }) => secretName),
    );
  }

  /** Whether Secrets are being read: without them it would be planned as if hosts kept what they have. */
  #isWaiting({ key }: IngressHead, { tls }: IngressSpec, secretOf: (name: string) => SecretFacts): boolean {
    const isUnknown = tls.some(({ secretName }) => secretName !== '' && secretOf(secretName).kind === 'unknown');
    if (!isUnknown) {
      this.#unknownSinceMs.delete(key);
      return false;
    }
    const nowMs = this.#deps.clock.monotonicMs();
    const sinceMs = this.#unknownSinceMs.get(key) ?? nowMs;
    this.#unknownSinceMs.set(key, sinceMs);
    return nowMs - sinceMs < SECRET_MS;
  }

  /** What is said of Secrets that are not known for some minutes, and when. */
  #unreadOf({ key, namespace }: IngressHead, { tls }: IngressSpec, secretOf: (name: string) => SecretFacts) {
    const sinceMs = this.#unknownSinceMs.get(key);
    if (sinceMs === undefined) return { notices: [], afterMs: Number.POSITIVE_INFINITY };
    const leftMs = sinceMs + UNREAD_MS - this.#deps.clock.monotonicMs();
    if (leftMs > 0) return { notices: [], afterMs: leftMs };
    const names = tls.flatMap(({ secretName }) => (secretOf(secretName).kind === 'unknown' ? [secretName] : []));
    const shown = [...new Set(names)].slice(0, SHOWN_SECRETS).map(describeValue).join(', ');
    const why = names.every((name) => this.#parts.secrets.isInLine(namespace, name))
      ? 'it waits to be read, as Ingresses of the namespace name many Secrets; let them name fewer'
      : 'the API server does not say for some minutes whether it is there; look at the log, it is tried again by itself';
    const message = `Secret ${shown}: ${why}. What its hosts have stays as it is`;
    return { notices: [remark('CertificateRefused', message)], afterMs: Number.POSITIVE_INFINITY };
  }

  /** The endpoints of Services, which are followed from now on; those of others are not any more. */
  #endpointsOf({ key, namespace }: IngressHead, names: ReadonlySet<string>) {
    this.#follow(key, new Set([...names].map((name) => `${namespace}/${name}`)));
    const all = new Map([...names].map((name) => [name, this.#parts.followed.endpointsOf(`${namespace}/${name}`)]));
    for (const endpoints of all.values()) if (endpoints.kind !== 'known') return endpoints;
    const slicesOf = (name: string) => {
      const its = all.get(name);
      return its?.kind === 'known' ? its.slices : [];
    };
    return { kind: 'known', slicesOf } as const;
  }

  #follow(key: string, services: ReadonlySet<string>): void {
    const before = this.#followed.get(key) ?? new Set();
    if (services.size === 0) this.#followed.delete(key);
    else this.#followed.set(key, services);
    for (const service of before) {
      if ([...this.#followed.values()].some((its) => its.has(service))) continue;
      this.#parts.followed.forget(service);
    }
  }
}

function refused(notice: Notice): IngressPlan {
  return { uploads: NO_UPLOADS, notices: [notice] };
}
