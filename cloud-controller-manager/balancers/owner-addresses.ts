import type { OwnerKind } from './balancer-owner.ts';
import type { LoadBalancerStep } from './load-balancer-step.ts';
import type { AddressPublisher } from './publish-addresses.ts';
import type { SeenTarget } from './wanted-addresses.ts';

/** The published addresses of the owners of one kind, by their keys `namespace/name`. */
export class OwnerAddresses {
  readonly #publisher: AddressPublisher;
  readonly #kind: OwnerKind;

  constructor(publisher: AddressPublisher, kind: OwnerKind) {
    this.#publisher = publisher;
    this.#kind = kind;
  }

  /** Notes that an owner has Pods as targets, or had: lists are read from now on. */
  need(): void {
    this.#publisher.need();
  }

  /** Whether lists are still to be read: nothing is registered before. */
  get isReading(): boolean {
    return this.#publisher.isReading;
  }

  /** Whether the targets of an owner have to be read for the lists. */
  isOld(key: string): boolean {
    return this.#publisher.isOld({ kind: this.#kind, key });
  }

  /** Notes which targets the listeners of an owner have now. `unreadIds`: listeners of which that is not known. */
  note(key: string, targets: readonly SeenTarget[], unreadIds?: readonly string[]): void {
    this.#publisher.note({ kind: this.#kind, key }, targets, unreadIds);
  }

  /** Notes that another owner has the same listeners, where they were read. */
  share(key: string, other: string): void {
    this.#publisher.share({ kind: this.#kind, key }, { kind: this.#kind, key: other });
  }

  /** Takes out what only an owner had that has no listener any more, while the owner still says so after a restart. */
  async release(key: string, signal: AbortSignal): Promise<void> {
    await this.#publisher.release({ kind: this.#kind, key }, signal);
  }

  /** Forgets an owner that has no listener any more. */
  forget(key: string): void {
    this.#publisher.forget({ kind: this.#kind, key });
  }

  /**
   * Publishes what steps are about to register.
   * @returns the addresses of Pods that must not be registered now; undefined while the lists are being read
   * @throws KubeError, StepError when nothing may be registered
   */
  async admit(
    key: string,
    steps: readonly LoadBalancerStep[],
    signal: AbortSignal,
  ): Promise<readonly string[] | undefined> {
    return await this.#publisher.admit({ kind: this.#kind, key }, steps, signal);
  }
}
