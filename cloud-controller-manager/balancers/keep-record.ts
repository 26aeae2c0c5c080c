import type { KubeObject } from '../../kube/kube-client.ts';
import type { BalancerOwner, OwnerWriter } from './balancer-owner.ts';
import { compareIdentity, otherVpcOf } from './compare-identity.ts';
import type { BalancerSource, DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { LoadBalancerStep } from './load-balancer-step.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';
import { readRecord } from './read-record.ts';

/** Keeps the record of which load balancer an owner has: it is written before anything is changed. */
export class OwnerMarkWriter {
  readonly #writer: OwnerWriter;

  constructor(writer: OwnerWriter) {
    this.#writer = writer;
  }

  /** Reads the head of an owner; accepts any shape. */
  headOf(object: KubeObject): BalancerOwner {
    return this.#writer.headOf(object);
  }

  /**
   * Writes which load balancer is next, when the one on record is released and another one is asked for.
   * @returns undefined when none is. @throws KubeError
   */
  async move(
    object: KubeObject,
    observed: ObservedLoadBalancer | undefined,
    first: LoadBalancerStep | undefined,
    { source, allowsAddressChange }: DesiredLoadBalancer,
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> {
    const { loadBalancerId } = readRecord(this.headOf(object));
    const wantedId = existingIdOf(source);
    const isReleased =
      observed === undefined
        ? wantedId !== undefined && loadBalancerId !== undefined && loadBalancerId !== wantedId
        : allowsAddressChange &&
          (first === undefined || first.kind === 'create') &&
          otherVpcOf(source, observed) === undefined &&
          compareIdentity(source, observed).length > 0;
    return isReleased ? await this.next(object, source, signal) : undefined;
  }

  /** Writes the record of the next load balancer: the present one is released. @throws KubeError */
  async next(object: KubeObject, source: BalancerSource, signal: AbortSignal): Promise<KubeObject> {
    const { serial } = readRecord(this.headOf(object));
    const loadBalancerId = existingIdOf(source);
    const record = loadBalancerId === undefined ? { serial: serial + 1 } : { serial, loadBalancerId };
    return await this.#writer.writeRecord(object, record, signal);
  }

  /** Writes finalizer and id, before the first change of a load balancer. No write when they are there. @throws KubeError */
  async ensure(
    object: KubeObject,
    { balancer: { loadBalancerId } }: ObservedLoadBalancer,
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const head = this.headOf(object);
    const record = readRecord(head);
    const isShown = head.annotations[this.#writer.idAnnotation] === loadBalancerId;
    const isSame = head.hasFinalizer && isShown && record.loadBalancerId === loadBalancerId;
    if (isSame && record.uid !== undefined) return object;
    // One of a former release gets the uid, and stays as it is.
    if (isSame) return await this.#writer.writeRecord(object, record, signal);
    return await this.#writer.writeRecord(object, { serial: Math.max(1, record.serial), loadBalancerId }, signal);
  }

  /** Writes that nothing was begun for the object: what its record names is of another one. @throws KubeError */
  async restart(object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    return await this.#writer.writeRecord(object, { serial: 0 }, signal);
  }

  /** Removes the hash of what is in force: it is about to change. No write when there is none. @throws KubeError */
  async unsettle(object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    const { settled, ...changing } = readRecord(this.headOf(object));
    return settled === undefined ? object : await this.#writer.writeRecord(object, changing, signal);
  }

  /** Writes whether there may be a security group for source ranges. No write when that is there. @throws KubeError */
  async noteGroup(object: KubeObject, sourceGroup: boolean, signal: AbortSignal): Promise<KubeObject> {
    const { settled: _, ...record } = readRecord(this.headOf(object));
    if ((record.sourceGroup ?? false) === sourceGroup) return object;
    return await this.#writer.writeRecord(object, { ...record, sourceGroup }, signal);
  }
}

/** Returns the id of the load balancer that exists and is to be used; undefined: one is made. */
export function existingIdOf(source: BalancerSource): string | undefined {
  return source.kind === 'existing' ? source.loadBalancerId : undefined;
}
