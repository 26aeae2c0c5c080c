import type { CniFailureError } from './cni-failure.ts';
import type { WaitingAdd } from './demand/find-waiting.ts';
import type { Family } from './journal/lease.ts';
import type { PoolAddress } from './pool/pool-state.ts';

/** Takes addresses for one ADD, of the pool or those that are kept for it. */
export type Taker = {
  /** How the ADD counts while it waits. */
  readonly waiting: WaitingAdd;
  /** Takes what there is, one address per family; undefined when there is none. `mayForce`: under pressure. */
  take(families: readonly Family[], nowMs: number, mayForce: boolean): readonly PoolAddress[] | undefined;
  /** Makes what was taken ready for its new owner. @throws after having given it back */
  prepare(): Promise<void>;
  /** Says why nothing was taken. */
  failure(waitedMs: number): CniFailureError;
};
