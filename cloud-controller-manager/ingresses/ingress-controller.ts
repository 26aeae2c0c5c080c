import { type ReconcileResult, runController } from '../../kube/controller.ts';
import { type Informer, openInformer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { withoutManagedFields } from '../../kube/managed-fields.ts';
import type { ObjectChange } from '../../kube/object-cache.ts';
import { INGRESS_CLASSES, INGRESSES } from '../../kube/resource-types.ts';
import { WorkQueue } from '../../kube/work-queue.ts';
import { recordOf, textOf } from '../../runtime/json.ts';
import { OwnerAddresses } from '../balancers/owner-addresses.ts';
import { OWNER_BOUNDS } from '../balancers/owner-bounds.ts';
import type { AddressSource } from '../balancers/publish-addresses.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { usesConfig } from '../service-configs/choose-config.ts';
import { ConfigsOfOwners } from '../service-configs/configs-of-owners.ts';
import { type DirectOwner, type GateSource, selectorOf } from '../services/gate-source.ts';
import { readBackendPorts } from '../services/read-ports.ts';
import { GATHER_MS, GATHER_PODS_MS, OWNER_BACKOFF, type SharedParts } from '../services/shared-parts.ts';
import { awaitIngressRights } from './await-rights.ts';
import { backendServicesOf } from './backend-services.ts';
import { decideIngress } from './decide-ingress.ts';
import { groupOf, unitKeysOf } from './decide-membership.ts';
import { namespaceOfGroup } from './find-members.ts';
import { INGRESS_INDEXES, INGRESSES_BY } from './ingress-indexes.ts';
import { hasBalancer, isDirect, isSkipped } from './ingress-needs.ts';
import { IngressPlanner } from './ingress-planner.ts';
import { IngressSync } from './ingress-sync.ts';
import { CertificateUploads } from './keep-certificates.ts';
import { ALL_INGRESSES, LeftTargets } from './left-targets.ts';
import { readAnnotations } from './read-annotations.ts';
import { readIngressHead } from './read-ingress.ts';
import { SecretReader } from './read-secrets.ts';
import { sweepCertificates } from './sweep-certificates.ts';

/** Units that are worked on at once; those of one namespace take at most half. */
const WORKERS = 128;

/** Keeps a load balancer for each Ingress of ours, or for a group of them. */
export class IngressController {
  readonly ingresses: Informer<KubeObject>;
  readonly #deps: ControllerDeps;
  readonly #parts: SharedParts;
  readonly #classes: Informer<KubeObject>;
  readonly #queue: WorkQueue;
  readonly #secrets: SecretReader;
  readonly #certificates: CertificateUploads;
  readonly #sync: IngressSync;
  readonly #left: LeftTargets;
  /** Units that were brought in line since the start, or reported. */
  readonly #planned = new Set<string>();
  #isForbidden = false;

  constructor(deps: ControllerDeps, parts: SharedParts) {
    const { kube: client, clock, log, random, metrics, config } = deps;
    const common = { client, clock, log, random, observer: metrics.informer, decode: withoutManagedFields };
    this.#deps = deps;
    this.#parts = parts;
    this.ingresses = openInformer({ ...common, type: INGRESSES, indexes: INGRESS_INDEXES, bounds: OWNER_BOUNDS });
    this.#classes = openInformer({ ...common, type: INGRESS_CLASSES });
    this.#queue = new WorkQueue({ clock, random, backoff: OWNER_BACKOFF, laneOf: (key) => this.#namespaceOf(key) });
    this.#secrets = new SecretReader(deps, (ingress) => this.#queueIngress(this.ingresses.get(ingress), 0));
    this.#certificates = new CertificateUploads(deps);
    const followed = parts.pods.open((service, isUrgent) => this.#onEndpoints(service, isUrgent));
    const planner = new IngressPlanner(deps, {
      ...{ ...parts, followed, secrets: this.#secrets },
      configs: new ConfigsOfOwners(deps, parts.configs),
    });
    const published = new OwnerAddresses(parts.published, 'ingress');
    // Of load balancers in another VPC it would find that they have no targets.
    const leftIn = () => (deps.instances.vpcFault === undefined ? parts.nodes.vpcId : undefined);
    this.#left = new LeftTargets(deps, published, leftIn);
    this.#sync = new IngressSync(deps, {
      ...{ ingresses: this.ingresses, nodes: parts.nodes, quota: parts.quota, order: parts.order, planner },
      classes: { controllerOf: (name) => this.#controllerOf(name), servesWithoutClass: config.servesWithoutClass },
      gates: parts.gates.of('ingress'),
      published,
      memory: parts.memory,
      certificates: this.#certificates,
    });
  }

  /** Whether it is known which Ingresses there are. */
  get isSynced(): boolean {
    return this.ingresses.isSynced && this.#classes.isSynced;
  }

  /** What Ingresses have as targets, for the lists of published addresses. */
  get addresses(): AddressSource {
    return {
      kind: 'ingress',
      boundServices: () =>
        [...this.ingresses.values()].filter((one) => this.#bindsPods(one)).flatMap(backendServicesOf),
      hasUnknown: (isKnown) =>
        this.isSynced
          ? [...this.ingresses.values()].some((one) => hasBalancer(one) && !isKnown(readIngressHead(one).key))
          : !isKnown(ALL_INGRESSES),
    };
  }

  /** The Ingresses with direct access, as readiness gates depend on them. */
  get direct(): GateSource {
    return {
      isReady: () => this.#isForbidden || this.isSynced,
      owners: () =>
        [...this.ingresses.values()]
          .filter((one) => this.#bindsPods(one) && !isSkipped(one))
          .map((one) => this.#directOwnerOf(one)),
    };
  }

  /** Notes that something has changed on which all load balancers depend. */
  changed(): void {
    for (const one of this.ingresses.values()) this.#queueIngress(one, GATHER_MS);
  }

  /** Notes that a TkeServiceConfig has changed: its `namespace/name`, or '' for any. */
  configChanged(key: string): void {
    for (const one of this.ingresses.values()) {
      const head = readIngressHead(one);
      const { settings } = readAnnotations(head.annotations);
      if (usesConfig({ ...head, ...settings }, key)) this.#queueIngress(one, GATHER_MS);
    }
  }

  /** Notes that another program, which kept the load balancers, has gone. */
  takeOver(): void {
    for (const one of this.ingresses.values()) this.#queueIngress(one, 0);
  }

  /** Keeps load balancers until aborted, from the moment in which the rights are there. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#awaitRights(signal);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    const stops = [
      this.ingresses.subscribe((change) => this.#onIngress(change)),
      this.#classes.subscribe(() => this.changed()),
      this.#parts.services.subscribe((change) => this.#onService(change)),
    ];
    const following = Promise.all([
      this.ingresses.start(signal),
      this.#classes.start(signal),
      this.#secrets.run(signal),
    ]);
    const { clock, log, metrics } = this.#deps;
    const { mayAct, order } = this.#parts;
    const reconcile = (key: string, ended: AbortSignal): Promise<ReconcileResult> => this.#reconcile(key, ended);
    const common = { name: 'ingress-lb-controller', queue: this.#queue, workers: WORKERS, reconcile };
    const begin = async (): Promise<void> => {
      await order.run(() => this.#queueAll(), signal);
      await sweepCertificates(this.#deps, this.#certificates, () => mayAct() && this.#arePlanned(), signal);
    };
    try {
      await this.ingresses.synced(signal);
      await this.#classes.synced(signal);
      this.#left.forget();
      await Promise.all([runController({ ...common, clock, log, observer: metrics.controller }, signal), begin()]);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      for (const stop of stops) stop();
      this.#queue.close();
      await following;
    }
  }

  #queueAll(): void {
    for (const one of this.ingresses.values())
      this.#queueIngress(one, this.#parts.order.isFirst(this.#boundOf(one)) ? 'first' : 0);
  }

  /** A group waits until all is known on which one of its Ingresses depends. */
  #mayBegin(key: string): boolean {
    const { nodes, order } = this.#parts;
    const ingress = nodes.vpcId === undefined ? undefined : this.ingresses.get(key);
    return order.mayBegin(ingress === undefined ? [] : this.#boundOf(ingress));
  }

  /** The Services whose Pods are targets of a load balancer that an Ingress has. */
  #boundOf(object: KubeObject): readonly string[] {
    return hasBalancer(object) && this.#bindsPods(object) ? backendServicesOf(object) : [];
  }

  /** Returns an Ingress with direct access, as gates depend on it: it selects the Pods of its Services. */
  #directOwnerOf(object: KubeObject): DirectOwner {
    const head = readIngressHead(object);
    const { key } = head;
    const selectors = backendServicesOf(object).flatMap((service) => {
      const its = this.#parts.services.get(service);
      return its === undefined ? [] : [selectorOf(its)];
    });
    const [planKey = key] = unitKeysOf(head);
    return { kind: 'ingress', key, planKey, object, selectors };
  }

  async #awaitRights(signal: AbortSignal): Promise<void> {
    const granted = new AbortController();
    const looking = this.#left.run(AbortSignal.any([signal, granted.signal]));
    const onMissing = (): void => {
      this.#isForbidden = true;
      this.#parts.gates.notify();
    };
    try {
      await awaitIngressRights(this.#deps, onMissing, signal);
    } finally {
      granted.abort();
      await looking;
    }
    this.#isForbidden = false;
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    if (!this.#parts.mayAct() || !this.#mayBegin(key)) return { kind: 'done' };
    const result = await this.#sync.reconcile(key, signal);
    // One that no Ingress belongs to any more is not asked for again.
    if (this.ingresses.byIndex(INGRESSES_BY.unit, key).length > 0) this.#planned.add(key);
    else this.#planned.delete(key);
    return result;
  }

  /** Whether each unit was looked at since the start. */
  #arePlanned(): boolean {
    const isPlanned = (object: KubeObject): boolean =>
      unitKeysOf(readIngressHead(object)).every((key) => this.#planned.has(key));
    return this.isSynced && [...this.ingresses.values()].every(isPlanned);
  }

  #onIngress({ before, after }: ObjectChange<KubeObject>): void {
    this.#queueIngress(before, 0);
    this.#queueIngress(after, 0);
    this.#parts.gates.notify();
  }

  #onService({ key, before, after }: ObjectChange<KubeObject>): void {
    if (portsTextOf(before) === portsTextOf(after)) return;
    for (const one of this.ingresses.byIndex(INGRESSES_BY.service, key)) this.#queueIngress(one, GATHER_PODS_MS);
  }

  #onEndpoints(service: string, isUrgent: boolean): void {
    for (const one of this.ingresses.byIndex(INGRESSES_BY.service, service))
      this.#queueIngress(one, isUrgent ? 'first' : GATHER_PODS_MS);
  }

  #queueIngress(object: KubeObject | undefined, after: number | 'first'): void {
    if (object === undefined) return;
    for (const key of unitKeysOf(readIngressHead(object))) {
      if (after === 'first') this.#queue.addFirst(key);
      else if (after === 0) this.#queue.add(key);
      else this.#queue.addAfter(key, after);
    }
  }

  #namespaceOf(unitKey: string): string {
    if (groupOf(unitKey) === undefined) return unitKey.slice(0, unitKey.indexOf('/'));
    return namespaceOfGroup(this.ingresses.byIndex(INGRESSES_BY.unit, unitKey));
  }

  #controllerOf(className: string): string | undefined {
    const found = this.#classes.get(className);
    return found === undefined ? undefined : textOf(recordOf(found['spec'])['controller']);
  }

  /** Whether the Pods of an Ingress are bound by their addresses: also of one whose class went, while it has its load balancer. */
  #bindsPods(object: KubeObject): boolean {
    if (!isDirect(object)) return false;
    const facts = {
      controllerOf: (name: string) => this.#controllerOf(name),
      servesWithoutClass: this.#deps.config.servesWithoutClass,
    };
    const { role } = decideIngress(readIngressHead(object), facts);
    return role === 'serve' || (role === 'ignore' && hasBalancer(object));
  }
}

/** What rules depend on of a Service. */
function portsTextOf(service: KubeObject | undefined): string {
  return service === undefined ? '' : JSON.stringify(readBackendPorts(service));
}
