import type { FaultRule } from '../../sim/vpc/api/faults.ts';
import { findLeaks } from './find-leaks.ts';
import { fewestCalls, type Join, leastSeconds } from './lower-bound.ts';
import { createWorld, joinNodes, until } from './world.ts';

/** What a join took. */
export type JoinReport = {
  readonly join: Join;
  /** Virtual seconds from the first Node until every Pod runs and every node has its warm addresses. */
  readonly seconds: number;
  readonly leastSeconds: number;
  /** Calls that change something, and calls of any kind, for a node. */
  readonly changesPerNode: number;
  readonly callsPerNode: number;
  readonly fewestPerNode: number;
  /** Writes to the API server for a node, of ipamd and of the agent. */
  readonly ipamdWritesPerNode: number;
  readonly agentWritesPerNode: number;
  /** What cloud and objects do not agree on. */
  readonly leaks: readonly string[];
  /** Seconds of this machine. */
  readonly wallSeconds: number;
};

const CORES = 8;
const LIMITS = { ipsPerEni: 19, enisPerNode: 5 } as const;
const PODS_PER_NODE = 30;
const WARM = 5;
const MOST_VIRTUAL_MS = 6 * 3_600_000;
const CHANGES = ['CreateNetworkInterface', 'AttachNetworkInterface', 'AssignPrivateIpAddresses'];

/** A fifth of the calls go wrong: refused for their rate, done without an answer, broken, or a gateway's 503. */
export const TWENTY_PERCENT: readonly FaultRule[] = [
  { probability: 0.08, fault: { kind: 'error', code: 'RequestLimitExceeded' } },
  { probability: 0.05, fault: { kind: 'error', code: 'InternalError', after: true } },
  { probability: 0.04, fault: { kind: 'reset', after: true } },
  { probability: 0.03, fault: { kind: 'http', status: 503 } },
];

/** Lets nodes of 8 cores join at once, 30 Pods waiting on each, on the virtual clock, and measures until all are served. */
export async function measureJoin(nodes: number, faults: readonly FaultRule[]): Promise<JoinReport> {
  const startedMs = performance.now();
  const world = await createWorld({ nodes, cores: CORES, cooldownMs: 120_000, isQuick: false, faults });
  const { clock, host, agents } = world;
  for (const [index, agent] of agents.entries()) {
    for (let pod = 0; pod < PODS_PER_NODE; pod++) agent.add(`pod-${index}-${pod}`);
  }
  host.forget();
  const writesBefore = world.ipamdWrites();
  const beganMs = clock.monotonicMs();
  await joinNodes(world);
  await clock.run(
    until(clock, () => agents.every((agent) => agent.running === PODS_PER_NODE && agent.free >= WARM)),
    MOST_VIRTUAL_MS,
  );
  const seconds = (clock.monotonicMs() - beganMs) / 1000;
  const counts = host.counts();
  const join: Join = { nodes, ipsPerNode: PODS_PER_NODE + WARM, ...LIMITS };
  const fewest = fewestCalls(join);
  const report = {
    join,
    seconds,
    leastSeconds: leastSeconds(join),
    changesPerNode: sum(CHANGES.map((action) => counts[action] ?? 0)) / nodes,
    callsPerNode: host.seen.length / nodes,
    fewestPerNode: fewest.create + fewest.attach + fewest.assign,
    ipamdWritesPerNode: (world.ipamdWrites() - writesBefore) / nodes,
    agentWritesPerNode: sum(agents.map((agent) => agent.writes)) / nodes,
  };
  // What went wrong last is still to be found out and mended: a quarter of an hour without faults, and nothing may be left.
  host.faults.clear();
  await clock.advance(REST_MS);
  const leaks = findLeaks(world);
  await world.close();
  return { ...report, leaks, wallSeconds: (performance.now() - startedMs) / 1000 };
}

const REST_MS = 900_000;

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
