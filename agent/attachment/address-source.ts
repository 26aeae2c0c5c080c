import type { CniFailureError } from '../api/cni-failure.ts';
import type { Family } from '../journal/lease.ts';
import type { WaitingAdd } from '../pods/count-waiting.ts';
import type { PoolAddress } from '../pool/pool-state.ts';

/** Takes addresses for one ADD: of the pool, or the static one of its Pod. */
export type AddressSource = {
  /** How the ADD counts as demand while it waits. */
  readonly waiting: WaitingAdd;
  /** Takes one address per family; undefined when there are none. `mayForce`: cooling ones may be taken too. */
  take(families: readonly Family[], nowMs: number, mayForce: boolean): readonly PoolAddress[] | undefined;
  /** Prepares what was taken for its new owner. @throws after having returned it */
  prepare(): Promise<void>;
  /** Builds the failure that says why nothing was taken. */
  failure(waitedMs: number): CniFailureError;
};
