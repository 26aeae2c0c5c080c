import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import type { KubeClient, KubeObject, ResourceType } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { BalancerOwner, OwnerWriter, StatusAddress } from './balancer-owner.ts';
import { type BalancerRecord, readRecord } from './read-record.ts';

/** What owners of a kind are. */
export type OwnerType<H extends BalancerOwner> = {
  readonly kind: H['kind'];
  readonly resource: ResourceType;
  readonly finalizer: string;
  /** The product's annotation for the id of the load balancer. */
  readonly idAnnotation: string;
  /** Reads the head of an owner; accepts any shape. */
  readonly headOf: (object: KubeObject) => H;
  /** `status.loadBalancer.ingress`. */
  readonly addressesOf: (head: H) => readonly StatusAddress[];
};

/** Writes of owners of one kind, with the right to list and patch them alone. Each is guarded by the uid. */
export class OwnerObjects<H extends BalancerOwner> implements OwnerWriter {
  readonly type: OwnerType<H>;
  readonly #kube: KubeClient;

  constructor(kube: KubeClient, type: OwnerType<H>) {
    this.#kube = kube;
    this.type = type;
  }

  get kind(): H['kind'] {
    return this.type.kind;
  }

  get idAnnotation(): string {
    return this.type.idAnnotation;
  }

  /** Reads the head of an owner; accepts any shape. */
  headOf(object: KubeObject): H {
    return this.type.headOf(object);
  }

  /** Reads an owner past the cache; undefined when it is gone. The published role has no `get` of Services. */
  async read(
    head: Pick<BalancerOwner, 'namespace' | 'name' | 'uid'>,
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> {
    const { namespace, name, uid } = head;
    const query = { namespace, fieldSelector: `metadata.name=${name}`, limit: 2 };
    const { items } = await this.#kube.listPage(this.type.resource, query, signal);
    return items.find(({ metadata }) => metadata.uid === uid);
  }

  /**
   * Writes the finalizer and the record of what is made next; that there is a security group stays, unless it is denied.
   * @throws KubeError CONFLICT when the object has changed
   */
  async writeRecord(object: KubeObject, record: BalancerRecord, signal: AbortSignal): Promise<KubeObject> {
    const { finalizer, idAnnotation } = this.type;
    const head = this.headOf(object);
    const { resourceVersion } = head;
    const before = readRecord(head);
    const kept = keptOf(before, record);
    const { sourceGroup = before.sourceGroup ?? false, ports = kept.ports, grouped = kept.grouped, ...rest } = record;
    const balancer = {
      ...rest,
      ...(ports === undefined ? {} : { ports: Object.fromEntries(ports) }),
      ...(grouped === undefined ? {} : { grouped }),
    };
    const finalizers = object.metadata.finalizers ?? [];
    const annotations = {
      [SERVICE_ANNOTATION.record]: JSON.stringify(sourceGroup ? { ...balancer, sourceGroup } : balancer),
      [idAnnotation]: record.loadBalancerId ?? null,
    };
    const added = finalizers.includes(finalizer) ? {} : { finalizers: [...finalizers, finalizer] };
    return await this.#patch(object, { annotations, resourceVersion, ...added }, signal);
  }

  /** Notes in the record what is in force. No write when it is there. */
  async writeSettled(object: KubeObject, settled: string, signal: AbortSignal): Promise<KubeObject> {
    const record = readRecord(this.headOf(object));
    return record.settled === settled ? object : await this.writeRecord(object, { ...record, settled }, signal);
  }

  /** Writes where clients reach the owner, into an annotation. No write when it is there. */
  async writeAddress(object: KubeObject, address: string, signal: AbortSignal): Promise<KubeObject> {
    if (object.metadata.annotations?.[SERVICE_ANNOTATION.address] === address) return object;
    return await this.#patch(object, { annotations: { [SERVICE_ANNOTATION.address]: address } }, signal);
  }

  /** Writes where clients reach the owner, into its status. No write when it is there. */
  async writeStatus(object: KubeObject, addresses: readonly StatusAddress[], signal: AbortSignal): Promise<void> {
    if (renderAddresses(this.type.addressesOf(this.headOf(object))) === renderAddresses(addresses)) return;
    await this.#patchStatus(object, addresses, {}, signal);
  }

  /**
   * Removes finalizer and annotations: nothing is left to release. What stays has no address any more, unless another
   * controller wrote one. An object that is gone is a success. @throws KubeError CONFLICT when the object has changed
   */
  async forget(object: KubeObject, signal: AbortSignal): Promise<void> {
    const { finalizer, idAnnotation } = this.type;
    const finalizers = (object.metadata.finalizers ?? []).filter((one) => one !== finalizer);
    const names = [SERVICE_ANNOTATION.record, SERVICE_ANNOTATION.address, idAnnotation];
    const annotations = Object.fromEntries(names.map((name) => [name, null]));
    try {
      const { resourceVersion } = this.headOf(await this.#clearStatus(object, signal));
      await this.#patch(object, { finalizers, annotations, resourceVersion }, signal);
    } catch (error) {
      if (!isKubeError(error, 'NOT_FOUND')) throw error;
    }
  }

  /** Takes the addresses out of the status that were written by this program; as the service controllers of Kubernetes do. */
  async #clearStatus(object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    const { deletionTimestamp, annotations } = object.metadata;
    const head = this.headOf(object);
    const addresses = this.type.addressesOf(head);
    const isOurs = renderAddress(addresses) === annotations?.[SERVICE_ANNOTATION.address];
    if (deletionTimestamp !== undefined || addresses.length === 0 || !isOurs) return object;
    try {
      return await this.#patchStatus(object, [], { resourceVersion: head.resourceVersion }, signal);
    } catch (error) {
      // The published role has no right to the status of Services, and nothing was written with it.
      if (isKubeError(error, 'FORBIDDEN')) return object;
      throw error;
    }
  }

  async #patchStatus(
    object: KubeObject,
    addresses: readonly StatusAddress[],
    guard: { readonly resourceVersion?: string },
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const { namespace, name, uid } = this.headOf(object);
    const body = { metadata: { uid, ...guard }, status: { loadBalancer: { ingress: addresses } } };
    const patch = { kind: 'merge', body, subresource: 'status' } as const;
    return await this.#kube.patch(this.type.resource, { namespace, name }, patch, signal);
  }

  async #patch(object: KubeObject, metadata: object, signal: AbortSignal): Promise<KubeObject> {
    const { namespace, name, uid } = this.headOf(object);
    const body = { metadata: { ...metadata, uid } };
    return await this.#kube.patch(this.type.resource, { namespace, name }, { kind: 'merge', body }, signal);
  }
}

/** Returns where clients reach an owner, as its annotation has it. */
export function renderAddress(addresses: readonly StatusAddress[]): string {
  return addresses.map(({ ip, hostname }) => ip ?? hostname).join();
}

/** A Service keeps its ports with its load balancer, and an Ingress stays in its group. */
function keptOf(
  before: BalancerRecord,
  { loadBalancerId }: BalancerRecord,
): Pick<Partial<BalancerRecord>, 'ports' | 'grouped'> {
  return before.loadBalancerId === loadBalancerId ? before : {};
}

function renderAddresses(addresses: readonly StatusAddress[]): string {
  return JSON.stringify(addresses.map(({ ip, hostname, ipMode }) => [ip, hostname, ipMode]));
}
