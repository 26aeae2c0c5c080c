import type { ClaimWait } from '../../decide/decision.ts';
import { MIN_WAIT_MS } from './claim-waits.ts';
import type { ClaimsTerm } from './claims-term.ts';

/** Notes why claims wait on a node; claims that wait for a while are enqueued. */
export function noteWaits(
  { waits, queues }: Pick<ClaimsTerm, 'waits' | 'queues'>,
  node: string,
  reasons: ReadonlyMap<string, ClaimWait>,
): void {
  for (const key of waits.note(node, reasons)) queues.claims.addAfter(key, MIN_WAIT_MS);
}
