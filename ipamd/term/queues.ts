import { WorkQueue } from '../../kube/work-queue.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { QueueSample } from '../observability/metrics.ts';

/** Work queues of the leader. */
export type Queues = {
  /** Nodes, for their supply: ENIs and addresses. */
  readonly supply: WorkQueue;
  /** Nodes, for their NodeENIConfig, taint and condition. */
  readonly nodes: WorkQueue;
  /** Keys of Pods, for their EIPs. */
  readonly eips: WorkQueue;
  /** Keys of Pods, for their static addresses. */
  readonly claims: WorkQueue;
  /** Nodes that Cilium serves with addresses of ipamd, for their CiliumNode. */
  readonly cilium: WorkQueue;
};

/** Makes empty queues. */
export function makeQueues(clock: Clock, random: () => number): Queues {
  const make = () => new WorkQueue({ clock, random });
  return { supply: make(), nodes: make(), eips: make(), claims: make(), cilium: make() };
}

/** Closes the queues: no more keys are handed out, running work goes on. */
export function closeQueues(queues: Queues): void {
  for (const queue of Object.values(queues)) queue.close();
}

/** Returns samples of the queues for metrics. */
export function sampleQueues(queues: Queues): readonly QueueSample[] {
  return Object.entries(queues).map(([queue, { size, runningCount }]) => ({
    queue,
    waiting: size,
    running: runningCount,
  }));
}
