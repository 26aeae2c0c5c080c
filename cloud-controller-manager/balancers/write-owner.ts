import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import { Contests } from '../../kube/contest.ts';
import type { KubeObject, ResourceType } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { BalancerOwner, OwnerWriter, StatusAddress } from './balancer-owner.ts';
import { type OwnerMark, readOwnerMark } from './owner-mark.ts';

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

/** Fields of owners that others may write too, for people. */
const FIELDS = {
  mark: 'the finalizer and the annotations of its load balancer',
  address: `the annotation ${SERVICE_ANNOTATION.address}`,
  status: 'status.loadBalancer',
} as const;

type Field = keyof typeof FIELDS;

/** What writes of owners depend on. */
type WriterDeps = Pick<ControllerDeps, 'kube' | 'clock'> & {
  /** Called once when another client is found to write a field again and again. @param what the field, for people */
  readonly onContest: (owner: BalancerOwner, what: string) => void;
};

/**
 * Writes of owners of one kind, with the right to list and patch them alone. Each is guarded by the uid. A field that another
 * client keeps changing back is written rarely.
 */
export class OwnerObjects<H extends BalancerOwner> implements OwnerWriter {
  readonly type: OwnerType<H>;
  readonly #deps: WriterDeps;
  readonly #contests = new Contests();
  /** By uid: when a field that is contested is written again; monotonic milliseconds. */
  readonly #heldUntilMs = new Map<string, number>();
  /** Before Kubernetes 1.29 API servers keep no `ipMode`, as their answers show. */
  #keepsIpMode = true;

  constructor(deps: WriterDeps, type: OwnerType<H>) {
    this.#deps = deps;
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
    const { items } = await this.#deps.kube.listPage(this.type.resource, query, signal);
    return items.find(({ metadata }) => metadata.uid === uid);
  }

  /**
   * Writes the finalizer and the mark of what is made next; that there is a security group stays, unless it is denied.
   * While another client keeps taking them away, the object is returned as if it had them: nothing waits for them.
   * @throws KubeError CONFLICT when the object has changed
   */
  async writeMark(object: KubeObject, mark: OwnerMark, signal: AbortSignal): Promise<KubeObject> {
    const { finalizer, idAnnotation } = this.type;
    const head = this.headOf(object);
    const { resourceVersion, uid } = head;
    const before = readOwnerMark(head);
    const kept = keptOf(before, mark);
    const { sourceGroup = before.sourceGroup ?? false, ports = kept.ports, grouped = kept.grouped, ...rest } = mark;
    const balancer = {
      ...{ ...rest, uid },
      ...(ports === undefined ? {} : { ports: Object.fromEntries(ports) }),
      ...(grouped === undefined ? {} : { grouped }),
    };
    const finalizers = object.metadata.finalizers ?? [];
    const annotations = {
      [SERVICE_ANNOTATION.record]: JSON.stringify(sourceGroup ? { ...balancer, sourceGroup } : balancer),
      [idAnnotation]: mark.loadBalancerId ?? null,
    };
    const added = finalizers.includes(finalizer) ? {} : { finalizers: [...finalizers, finalizer] };
    if (this.#isHeld(object, 'mark')) return withMark(object, annotations, added);
    const written = await this.#patch(object, { annotations, resourceVersion, ...added }, signal);
    this.#noteWritten(written, 'mark');
    return written;
  }

  /** Notes in the mark the hash of what is in force. No write when it is there. */
  async writeHash(object: KubeObject, hash: string, signal: AbortSignal): Promise<KubeObject> {
    const mark = readOwnerMark(this.headOf(object));
    return mark.settled === hash ? object : await this.writeMark(object, { ...mark, settled: hash }, signal);
  }

  /** Writes where clients reach the owner, into an annotation. No write when it is there. */
  async writeAddress(object: KubeObject, address: string, signal: AbortSignal): Promise<KubeObject> {
    if ((object.metadata.annotations?.[SERVICE_ANNOTATION.address] ?? '') === address) return object;
    if (this.#isHeld(object, 'address')) return object;
    const written = await this.#patch(object, { annotations: { [SERVICE_ANNOTATION.address]: address } }, signal);
    this.#noteWritten(written, 'address');
    return written;
  }

  /** Writes where clients reach the owner, into its status. No write when it is there. */
  async writeStatus(object: KubeObject, addresses: readonly StatusAddress[], signal: AbortSignal): Promise<void> {
    const present = this.type.addressesOf(this.headOf(object));
    const hasIpMode = this.#keepsIpMode || present.some(({ ipMode }) => ipMode !== undefined);
    if (renderAddresses(present, hasIpMode) === renderAddresses(addresses, hasIpMode)) return;
    if (this.#isHeld(object, 'status')) return;
    const written = await this.#patchStatus(object, addresses, {}, signal);
    this.#noteWritten(written, 'status');
    const kept = this.type.addressesOf(this.headOf(written));
    if (addresses.some(({ ipMode }) => ipMode !== undefined))
      this.#keepsIpMode = kept.length === 0 || kept.some(({ ipMode }) => ipMode !== undefined);
  }

  /** Returns how long a field of an owner is not written, as another client writes it too; infinite: none. */
  heldMs({ uid }: Pick<BalancerOwner, 'uid'>): number {
    const untilMs = this.#heldUntilMs.get(uid);
    if (untilMs === undefined) return Number.POSITIVE_INFINITY;
    this.#heldUntilMs.delete(uid);
    return Math.max(0, untilMs - this.#deps.clock.monotonicMs());
  }

  /** Asks whether a field is not to be written now; notes until when. */
  #isHeld(object: KubeObject, field: Field): boolean {
    const owner = this.headOf(object);
    const nowMs = this.#deps.clock.monotonicMs();
    const key = `${owner.uid} ${field}`;
    const isUndone = this.#contests.valueOf(key) !== this.#textOf(object, field);
    const { waitMs, isNew } = this.#contests.ask(key, isUndone, object.metadata, nowMs);
    if (isNew) this.#deps.onContest(owner, FIELDS[field]);
    if (waitMs === 0) return false;
    // A mark is written with the version that was read: of an object that is behind the own write it is refused.
    if (field === 'mark' && !this.#contests.isContested(key, nowMs)) return false;
    const untilMs = this.#heldUntilMs.get(owner.uid) ?? Number.POSITIVE_INFINITY;
    this.#heldUntilMs.set(owner.uid, Math.min(untilMs, nowMs + waitMs));
    return true;
  }

  /** @param written the answer to the write: what it shows is what the API server keeps */
  #noteWritten(written: KubeObject, field: Field): void {
    const { uid } = this.headOf(written);
    const nowMs = this.#deps.clock.monotonicMs();
    this.#contests.note(`${uid} ${field}`, this.#textOf(written, field), written.metadata, nowMs);
  }

  #textOf(object: KubeObject, field: Field): string {
    const { finalizer, idAnnotation } = this.type;
    const { annotations = {}, finalizers = [] } = object.metadata;
    const { record, address } = SERVICE_ANNOTATION;
    switch (field) {
      case 'mark':
        return JSON.stringify([annotations[record], annotations[idAnnotation], finalizers.includes(finalizer)]);
      case 'address':
        return JSON.stringify(annotations[address]) ?? '';
      case 'status':
        return renderAddresses(this.type.addressesOf(this.headOf(object)), true);
    }
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
      const written = await this.#patch(object, { finalizers, annotations, resourceVersion }, signal);
      for (const field of ['mark', 'address'] as const) this.#noteWritten(written, field);
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
    return await this.#deps.kube.patch(this.type.resource, { namespace, name }, patch, signal);
  }

  async #patch(object: KubeObject, metadata: object, signal: AbortSignal): Promise<KubeObject> {
    const { namespace, name, uid } = this.headOf(object);
    const body = { metadata: { ...metadata, uid } };
    return await this.#deps.kube.patch(this.type.resource, { namespace, name }, { kind: 'merge', body }, signal);
  }
}

/** Returns where clients reach an owner, as its annotation has it. */
export function renderAddress(addresses: readonly StatusAddress[]): string {
  return addresses.map(({ ip, hostname }) => ip ?? hostname).join();
}

/** A Service keeps its ports with its load balancer, and an Ingress stays in its group. */
function keptOf(before: OwnerMark, { loadBalancerId }: OwnerMark): Pick<Partial<OwnerMark>, 'ports' | 'grouped'> {
  return before.loadBalancerId === loadBalancerId ? before : {};
}

function renderAddresses(addresses: readonly StatusAddress[], hasIpMode: boolean): string {
  return JSON.stringify(addresses.map(({ ip, hostname, ipMode }) => [ip, hostname, ...(hasIpMode ? [ipMode] : [])]));
}

/** Returns an object with annotations and finalizers that it is to have. */
function withMark(
  object: KubeObject,
  annotations: Readonly<Record<string, string | null>>,
  added: { readonly finalizers?: readonly string[] },
): KubeObject {
  const all = Object.entries({ ...object.metadata.annotations, ...annotations });
  const kept = all.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
  return { ...object, metadata: { ...object.metadata, ...added, annotations: Object.fromEntries(kept) } };
}
