import type { SummaryReply } from '../../agent/api/ops-messages.ts';
import { countUses, type PoolView, type UseCounts } from '../pool/pool-view.ts';

/** The agent and its pool at one moment. */
export type NodeStatus = {
  /** Undefined: no agent answers. */
  readonly summary?: SummaryReply;
  readonly pool: PoolView;
  readonly counts: UseCounts;
};

/** Joins what was read. Pure. */
export function findStatus(pool: PoolView, summary: SummaryReply | undefined): NodeStatus {
  return { ...(summary === undefined ? {} : { summary }), pool, counts: countUses(pool.addresses) };
}

/** Tells whether nothing needs a look: an agent answers, would serve an ADD, and nobody is in its way. Pure. */
export function isWell({ summary, pool }: NodeStatus): boolean {
  if (summary === undefined) return false;
  const isReady = (summary.status?.code ?? 0) === 0;
  const isFree = summary.conflicts.length === 0 && summary.held.length === 0;
  return isReady && isFree && summary.lastPassError === '' && pool.supplyProblem === '' && pool.enis.every(isServing);
}

/** An ENI that drains or is on its way is no fault; one that says why it cannot serve is. */
function isServing({ problem }: PoolView['enis'][number]): boolean {
  return problem === '';
}
