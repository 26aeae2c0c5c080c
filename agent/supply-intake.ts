import type { Logger } from '../runtime/log.ts';
import { keepEnisInUse } from './eni/effective-supply.ts';
import type { Journal } from './journal/journal-content.ts';
import type { NodeState } from './node-state.ts';
import type { Metrics } from './observability/metrics.ts';
import type { Supply, SupplyEvent } from './supply/supply.ts';

/** What taking in supply needs. */
export type SupplyIntakeDeps = {
  readonly state: NodeState;
  readonly journal: Journal;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** '' takes supply for any node. */
  readonly nodeName: string;
  /** Called when the kernel may have to follow. */
  readonly supplyChanged: () => void;
};

/** Puts a supply in force, or says why not. What is in force stays until something better comes. */
export function takeSupply(deps: SupplyIntakeDeps, event: SupplyEvent): void {
  if (event.kind === 'invalid') {
    // Its source has logged why.
    deps.metrics.supplyError();
    return;
  }
  if (!isForNode(event.supply, deps.nodeName)) {
    deps.metrics.supplyError();
    deps.log.error('supply is for another node, refused', { for: event.supply.nodeName, nodeName: deps.nodeName });
    return;
  }
  const { state } = deps;
  const supply = keepEnisInUse(event.supply, state.supply, state.leases.values());
  const result = state.pool.applySupply(supply);
  if (result.kind === 'distrusted') {
    deps.metrics.supplyError();
    deps.log.error('supply is older than the one in force, not believed', {
      epoch: result.epoch,
      inForce: result.inForce,
    });
    return;
  }
  state.supply = supply;
  remember(deps, supply);
  deps.log.info('supply in force', {
    epoch: supply.epoch,
    enis: supply.enis.map(({ eniId }) => eniId),
    added: result.added.length,
    dropped: result.dropped,
    missing: result.missing,
  });
  state.changed.notify();
  deps.supplyChanged();
}

/** Tells whether a supply is meant for this node; a node that was given no name takes any. */
export function isForNode(supply: Supply, nodeName: string): boolean {
  return nodeName === '' || supply.nodeName === nodeName;
}

/** Without its record a restart begins with the supply before, and gets this one from its source again. */
function remember({ journal, metrics, log }: SupplyIntakeDeps, supply: Supply): void {
  try {
    journal.putSupply(supply);
  } catch (error) {
    metrics.journalError();
    log.error('journal did not take the supply, going on', { error });
  }
}
