import type { SummaryReply } from '../../../agent/api/ops-messages.ts';
import { addressesOfEnis } from '../pool/build-blocks.ts';
import { countUses, type PoolView, type UseCounts } from '../pool/pool-view.ts';
import { decideReadiness } from './decide-readiness.ts';

/** State of the agent and its pool at one moment. */
export type NodeStatus = {
  /** Undefined when no agent answers. */
  readonly summary?: SummaryReply;
  readonly pool: PoolView;
  readonly counts: UseCounts;
};

/** Joins the pool and the agent's summary. */
export function buildStatus(pool: PoolView, summary: SummaryReply | undefined): NodeStatus {
  return { ...(summary === undefined ? {} : { summary }), pool, counts: countUses(addressesOfEnis(pool.addresses)) };
}

/**
 * Reports whether everything is in order: an agent answers, would serve an ADD, reports no conflict, and the API server
 * refuses it nothing that Pods need. A node that is
 * full, or has asked for the addresses that it lacks, is in order.
 */
export function isHealthy(status: NodeStatus): boolean {
  const { summary, pool } = status;
  const readiness = decideReadiness(status)?.kind;
  if (summary === undefined) return false;
  const isReady = readiness !== 'no' && readiness !== 'limited';
  const isFree = summary.conflicts.length === 0 && summary.held.length === 0;
  const isAnswered = !summary.apiFailures.some(({ isNeededByPods }) => isNeededByPods);
  return (
    isReady &&
    isFree &&
    isAnswered &&
    summary.lastPassError === '' &&
    pool.supplyProblem === '' &&
    pool.enis.every(isServing)
  );
}

/** Reports whether an ENI is in order. One that drains or is being attached is; one that reports a problem is not. */
function isServing({ problem }: PoolView['enis'][number]): boolean {
  return problem === '';
}
