import { findLeaks } from './find-leaks.ts';
import { createWorld, joinNodes, until } from './world.ts';

/** Pods that come one by one. */
type TrickleSpec = {
  readonly nodes: number;
  readonly podsPerNode: number;
  /** Time between two Pods of a node, milliseconds. */
  readonly everyMs: number;
  /** How long agents gather demand, milliseconds; default the product's. */
  readonly gatherMs?: number;
};

/** What a trickle took, until every node is at rest again. */
export type TrickleReport = {
  readonly pods: number;
  /** Calls for a Pod: those that assign addresses, those that change something, and all. */
  readonly assignsPerPod: number;
  readonly changesPerPod: number;
  readonly callsPerPod: number;
  /** Writes of NodeENIConfigs for a Pod: of ipamd, and of the agents. */
  readonly ipamdWritesPerPod: number;
  readonly agentWritesPerPod: number;
  /** Pods that did not have an address at once, and the longest wait, milliseconds. */
  readonly waited: number;
  readonly longestWaitMs: number;
  /** What cloud and objects do not agree on, and nodes without exactly their warm addresses. */
  readonly leaks: readonly string[];
};

const WARM = 5;
const REST_MS = 60_000;

/** Lets Pods come to nodes of 8 cores that are at rest, one by one, on the virtual clock. */
export async function measureTrickle({ nodes, podsPerNode, everyMs, gatherMs }: TrickleSpec): Promise<TrickleReport> {
  const waits: number[] = [];
  const sinceMs = new Map<string, number>();
  const world = await createWorld({
    ...{ nodes, cores: 8, cooldownMs: 120_000, isQuick: false },
    ...(gatherMs === undefined ? {} : { gatherMs }),
    onAddress: (podId) => waits.push(clock.bootMs() - (sinceMs.get(podId) ?? 0)),
  });
  const { clock, host, agents } = world;
  await joinNodes(world);
  await clock.run(
    until(clock, () => agents.every((agent) => agent.free >= WARM)),
    3_600_000,
  );
  await clock.advance(REST_MS);
  host.forget();
  const ipamdWrites = (): number => world.ipamdWrites('nodeeniconfigs');
  const agentWrites = (): number => agents.reduce((sum, agent) => sum + agent.writes, 0);
  const [ipamdBefore, agentBefore] = [ipamdWrites(), agentWrites()];
  for (let pod = 0; pod < podsPerNode; pod++) {
    for (const [node, agent] of agents.entries()) {
      const id = `pod-${node}-${pod}`;
      sinceMs.set(id, clock.bootMs());
      agent.add(id);
      await clock.advance(everyMs / nodes);
    }
  }
  await clock.advance(REST_MS);
  const pods = nodes * podsPerNode;
  const { AssignPrivateIpAddresses: assigns = 0 } = host.counts();
  const report = {
    pods,
    assignsPerPod: assigns / pods,
    changesPerPod: host.seen.filter(({ action }) => !action.startsWith('Describe')).length / pods,
    callsPerPod: host.seen.length / pods,
    ipamdWritesPerPod: (ipamdWrites() - ipamdBefore) / pods,
    agentWritesPerPod: (agentWrites() - agentBefore) / pods,
    waited: waits.filter((ms) => ms > 0).length,
    longestWaitMs: Math.max(...waits),
    leaks: [...findLeaks(world), ...agents.filter(({ free }) => free !== WARM).map(({ free }) => `${free} are free`)],
  };
  await world.close();
  return report;
}
