import { LOAD_BALANCER_ID_ANNOTATION } from '../../crd/foreign-names.ts';
import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { SERVICES } from '../../kube/resource-types.ts';
import { type BalancerRecord, readRecord } from './read-record.ts';
import { type Ingress, readServiceHead, SERVICE_FINALIZER, type ServiceHead } from './read-service.ts';

/** Writes of Services, with the right to list and patch them alone. Each is guarded by the uid. */
export class ServiceWriter {
  readonly #kube: KubeClient;

  constructor(kube: KubeClient) {
    this.#kube = kube;
  }

  /** Reads a Service past the cache; undefined when it is gone. The published role has no `get` of Services. */
  async read(
    head: Pick<ServiceHead, 'namespace' | 'name' | 'uid'>,
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> {
    const { namespace, name, uid } = head;
    const query = { namespace, fieldSelector: `metadata.name=${name}`, limit: 2 };
    const { items } = await this.#kube.listPage(SERVICES, query, signal);
    return items.find(({ metadata }) => metadata.uid === uid);
  }

  /** Writes the finalizer and the record of what is made next; that there is a security group stays, unless it is denied. @throws KubeError CONFLICT when the Service has changed */
  async writeRecord(object: KubeObject, record: BalancerRecord, signal: AbortSignal): Promise<KubeObject> {
    const head = readServiceHead(object);
    const { resourceVersion } = head;
    const { sourceGroup = readRecord(head).sourceGroup ?? false, ...balancer } = record;
    const finalizers = object.metadata.finalizers ?? [];
    const annotations = {
      [SERVICE_ANNOTATION.record]: JSON.stringify(sourceGroup ? { ...balancer, sourceGroup } : balancer),
      [LOAD_BALANCER_ID_ANNOTATION]: record.loadBalancerId ?? null,
    };
    const added = finalizers.includes(SERVICE_FINALIZER) ? {} : { finalizers: [...finalizers, SERVICE_FINALIZER] };
    return await this.#patch(object, { annotations, resourceVersion, ...added }, signal);
  }

  /** Notes in the record what is in force. No write when it is there. */
  async writeSettled(object: KubeObject, settled: string, signal: AbortSignal): Promise<KubeObject> {
    const record = readRecord(readServiceHead(object));
    return record.settled === settled ? object : await this.writeRecord(object, { ...record, settled }, signal);
  }

  /** Writes where clients reach the Service, into an annotation. No write when it is there. */
  async writeAddress(object: KubeObject, address: string, signal: AbortSignal): Promise<KubeObject> {
    if (object.metadata.annotations?.[SERVICE_ANNOTATION.address] === address) return object;
    return await this.#patch(object, { annotations: { [SERVICE_ANNOTATION.address]: address } }, signal);
  }

  /** Writes where clients reach the Service, into its status. No write when it is there. */
  async writeStatus(object: KubeObject, ingress: readonly Ingress[], signal: AbortSignal): Promise<void> {
    const { namespace, name, uid, ingress: present } = readServiceHead(object);
    if (renderIngress(present) === renderIngress(ingress)) return;
    const body = { metadata: { uid }, status: { loadBalancer: { ingress } } };
    await this.#kube.patch(SERVICES, { namespace, name }, { kind: 'merge', body, subresource: 'status' }, signal);
  }

  /** Removes finalizer and annotations: nothing is left to release. A Service that is gone is a success. */
  async forget(object: KubeObject, signal: AbortSignal): Promise<void> {
    const finalizers = (object.metadata.finalizers ?? []).filter((one) => one !== SERVICE_FINALIZER);
    const { resourceVersion } = readServiceHead(object);
    const names = [SERVICE_ANNOTATION.record, SERVICE_ANNOTATION.address, LOAD_BALANCER_ID_ANNOTATION];
    const annotations = Object.fromEntries(names.map((name) => [name, null]));
    try {
      await this.#patch(object, { finalizers, annotations, resourceVersion }, signal);
    } catch (error) {
      if (!isKubeError(error, 'NOT_FOUND')) throw error;
    }
  }

  async #patch(object: KubeObject, metadata: object, signal: AbortSignal): Promise<KubeObject> {
    const { namespace, name, uid } = readServiceHead(object);
    const body = { metadata: { ...metadata, uid } };
    return await this.#kube.patch(SERVICES, { namespace, name }, { kind: 'merge', body }, signal);
  }
}

function renderIngress(ingress: readonly Ingress[]): string {
  return JSON.stringify(ingress.map(({ ip, hostname, ipMode }) => [ip, hostname, ipMode]));
}
