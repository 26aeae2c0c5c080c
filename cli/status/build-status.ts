import type { SummaryReply } from '../../agent/api/ops-messages.ts';
import { countUses, type PoolView, type UseCounts } from '../pool/pool-view.ts';

/** State of the agent and its pool at one moment. */
export type NodeStatus = {
  /** Undefined when no agent answers. */
  readonly summary?: SummaryReply;
  readonly pool: PoolView;
  readonly counts: UseCounts;
};

/** Joins the pool and the agent's summary. */
export function buildStatus(pool: PoolView, summary: SummaryReply | undefined): NodeStatus {
  return { ...(summary === undefined ? {} : { summary }), pool, counts: countUses(pool.addresses) };
}

/** Tells whether everything is in order: an agent answers, would serve an ADD, and reports no conflict. */
export function isHealthy({ summary, pool }: NodeStatus): boolean {
  if (summary === undefined) return false;
  const isReady = (summary.status?.code ?? 0) === 0;
  const isFree = summary.conflicts.length === 0 && summary.held.length === 0;
  return isReady && isFree && summary.lastPassError === '' && pool.supplyProblem === '' && pool.enis.every(isServing);
}

/** Tells whether an ENI is in order. One that drains or is being attached is; one that reports a problem is not. */
function isServing({ problem }: PoolView['enis'][number]): boolean {
  return problem === '';
}
