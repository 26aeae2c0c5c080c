import { WorkQueue } from '../../kube/work-queue.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { QueueSample } from '../observability/state-metrics.ts';

/** The lines in which work waits while this process leads. */
export type Queues = {
  /** For their supply: ENIs and addresses. */
  readonly supply: WorkQueue;
  /** For their NodeENIConfig, taint and condition. */
  readonly nodes: WorkQueue;
  /** Keys of Pods, for their EIPs. */
  readonly eips: WorkQueue;
  /** Keys of Pods, for the addresses that are kept for them. */
  readonly claims: WorkQueue;
};

/** Makes empty queues. */
export function makeQueues(clock: Clock, random: () => number): Queues {
  const make = () => new WorkQueue({ clock, random });
  return { supply: make(), nodes: make(), eips: make(), claims: make() };
}

/** Hands out nothing more; what is worked on goes on. */
export function closeQueues(queues: Queues): void {
  for (const queue of Object.values(queues)) queue.close();
}

/** Shows queues for metrics. */
export function sampleQueues(queues: Queues): readonly QueueSample[] {
  return Object.entries(queues).map(([queue, { size, runningCount }]) => ({
    queue,
    waiting: size,
    running: runningCount,
  }));
}
