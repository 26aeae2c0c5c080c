import type { KubeObject } from '../../kube/kube-client.ts';
import type { BalancerOwner, OwnerWriter } from './balancer-owner.ts';
import { compareIdentity, otherVpcOf } from './compare-identity.ts';
import type { BalancerSource, DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { LoadBalancerStep } from './load-balancer-step.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';
import { readOwnerMark } from './owner-mark.ts';

/** Keeps the mark of which load balancer an owner has: it is written before anything is changed. */
export class OwnerMarkWriter {
  readonly #writer: OwnerWriter;

  constructor(writer: OwnerWriter) {
    this.#writer = writer;
  }

  /** Reads the head of an owner; accepts any shape. */
  headOf(object: KubeObject): BalancerOwner {
    return this.#writer.headOf(object);
  }

  /** Reports whether nothing is left to do on the load balancer on record, and another one is asked for. */
  isReleased(
    object: KubeObject,
    observed: ObservedLoadBalancer | undefined,
    first: LoadBalancerStep | undefined,
    { source, allowsAddressChange }: DesiredLoadBalancer,
  ): boolean {
    const { loadBalancerId } = readOwnerMark(this.headOf(object));
    const wantedId = existingIdOf(source);
    if (observed === undefined)
      return wantedId !== undefined && loadBalancerId !== undefined && loadBalancerId !== wantedId;
    return (
      allowsAddressChange &&
      (first === undefined || first.kind === 'create') &&
      otherVpcOf(source, observed) === undefined &&
      compareIdentity(source, observed).length > 0
    );
  }

  /** Writes the mark of the next load balancer: the present one is released. @throws KubeError */
  async next(object: KubeObject, source: BalancerSource, signal: AbortSignal): Promise<KubeObject> {
    const { serial } = readOwnerMark(this.headOf(object));
    const loadBalancerId = existingIdOf(source);
    const mark = loadBalancerId === undefined ? { serial: serial + 1 } : { serial, loadBalancerId };
    return await this.#writer.writeMark(object, mark, signal);
  }

  /** Writes finalizer and id, before the first change of a load balancer. No write when they are there. @throws KubeError */
  async ensure(
    object: KubeObject,
    { balancer: { loadBalancerId } }: ObservedLoadBalancer,
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const head = this.headOf(object);
    const mark = readOwnerMark(head);
    const isShown = head.annotations[this.#writer.idAnnotation] === loadBalancerId;
    const isSame = head.hasFinalizer && isShown && mark.loadBalancerId === loadBalancerId;
    if (isSame && mark.uid !== undefined) return object;
    // One of a former release gets the uid, and stays as it is.
    if (isSame) return await this.#writer.writeMark(object, mark, signal);
    return await this.#writer.writeMark(object, { serial: Math.max(1, mark.serial), loadBalancerId }, signal);
  }

  /** Writes that nothing was begun for the object: what its mark names is of another one. @throws KubeError */
  async restart(object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    return await this.#writer.writeMark(object, { serial: 0 }, signal);
  }

  /** Removes the hash of what is in force: it is about to change. No write when there is none. @throws KubeError */
  async clearHash(object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    const { settled, ...changing } = readOwnerMark(this.headOf(object));
    return settled === undefined ? object : await this.#writer.writeMark(object, changing, signal);
  }

  /** Writes whether there may be a security group for source ranges. No write when that is there. @throws KubeError */
  async noteGroup(object: KubeObject, sourceGroup: boolean, signal: AbortSignal): Promise<KubeObject> {
    const { settled: _, ...mark } = readOwnerMark(this.headOf(object));
    if ((mark.sourceGroup ?? false) === sourceGroup) return object;
    return await this.#writer.writeMark(object, { ...mark, sourceGroup }, signal);
  }
}

/** Returns the id of the load balancer that exists and is to be used; undefined: one is made. */
export function existingIdOf(source: BalancerSource): string | undefined {
  return source.kind === 'existing' ? source.loadBalancerId : undefined;
}
