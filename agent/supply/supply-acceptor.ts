import type { Background } from '../../runtime/background.ts';
import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import { type AcceptSupplyDeps, acceptSupply } from './accept-supply.ts';
import type { SupplyEvent } from './supply-source.ts';

/** Accepts the events of a source of supply. */
type SupplyAcceptor = {
  /** Accepts an event; one that cannot be checked now is tried again until a newer one comes. Never throws for the kernel. */
  accept(event: SupplyEvent): void;
  /** Ends waiting; what waits is dropped. Its source gives it again to the next agent. */
  close(): void;
};

/** What retries need. */
type SupplyAcceptorDeps = {
  readonly background: Background;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Logger;
  readonly random: () => number;
};

/** Waits before the same event is tried again. */
const RETRY: BackoffSettings = { firstMs: 100, maxMs: 10_000, factor: 2, jitter: 0.3 };

/**
 * Opens the one way by which supply comes into force. A supply is checked against the node's own links and addresses, which
 * cannot be read at every moment: a dump is interrupted while another program changes the kernel without a pause. What
 * the journal has is checked first: an agent that refused less may have recorded it.
 */
export function openSupplyAcceptor(
  deps: AcceptSupplyDeps,
  { background, clock, log, random }: SupplyAcceptorDeps,
): SupplyAcceptor {
  let waiting: AbortController | undefined;
  const retry = async (event: SupplyEvent, signal: AbortSignal): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      try {
        await clock.sleep(backoffMs(RETRY, attempt, random()), signal);
      } catch {
        return;
      }
      if (acceptSupply(deps, event) === 'accepted') return;
    }
  };
  const accept = (event: SupplyEvent): void => {
    waiting?.abort('a newer supply came');
    waiting = undefined;
    if (acceptSupply(deps, event) === 'accepted') return;
    log.warn('the supply waits until the links and addresses of the node can be read', { retryMs: RETRY.firstMs });
    waiting = new AbortController();
    background('waiting to accept supply', retry(event, waiting.signal));
  };
  if (deps.state.supply !== undefined) accept({ kind: 'supply', supply: deps.state.supply });
  return { accept, close: () => waiting?.abort('the agent is shutting down') };
}
