import { seededRandom } from '../../sim/support/seeded-random.ts';
import { findLeaks } from './find-leaks.ts';
import { createWorld, joinNodes, until } from './world.ts';

/** What an hour of coming and going took. */
type ChurnReport = {
  readonly nodes: number;
  readonly podsStarted: number;
  /** Calls to the cloud in the hour, of any kind, and those that change something. */
  readonly calls: number;
  readonly changes: number;
  readonly writesPerPod: number;
  /** Pods that had no address within a minute of their start. */
  readonly late: number;
  readonly leaks: readonly string[];
  readonly wallSeconds: number;
};

const NODES = 200;
const PODS_PER_NODE = 20;
const PODS_PER_MINUTE = 1_000;
const MINUTES = 60;
const MINUTE_MS = 60_000;
const REST_MS = 900_000;

/** Starts and ends a thousand Pods a minute, on nodes chosen by chance, for an hour of the virtual clock. */
export async function measureChurn(): Promise<ChurnReport> {
  const startedMs = performance.now();
  const world = await createWorld({ nodes: NODES, cores: 8, cooldownMs: 120_000, isQuick: false });
  const { clock, host, agents } = world;
  const random = seededRandom(21);
  const pods: { readonly id: string; readonly node: number }[] = [];
  let serial = 0;
  const start = (): void => {
    serial += 1;
    const node = Math.floor(random() * NODES);
    pods.push({ id: `pod-${serial}`, node });
    agents[node]?.add(`pod-${serial}`);
  };
  const end = (): void => {
    const [pod] = pods.splice(Math.floor(random() * pods.length), 1);
    if (pod !== undefined) agents[pod.node]?.remove(pod.id);
  };
  await joinNodes(world);
  for (let pod = 0; pod < NODES * PODS_PER_NODE; pod++) start();
  await clock.run(
    until(clock, () => agents.every((agent) => agent.waiting === 0)),
    3_600_000,
  );
  host.forget();
  const writes = (): number => world.ipamdWrites() + agents.reduce((sum, agent) => sum + agent.writes, 0);
  const writesBefore = writes();
  const first = serial;
  let late = 0;
  for (let minute = 0; minute < MINUTES; minute++) {
    for (let pod = 0; pod < PODS_PER_MINUTE; pod++) {
      start();
      end();
      await clock.advance(MINUTE_MS / PODS_PER_MINUTE);
    }
    late += agents.reduce((sum, agent) => sum + agent.waitingSince(clock.bootMs() - MINUTE_MS), 0);
  }
  const started = serial - first;
  const report = {
    nodes: NODES,
    podsStarted: started,
    calls: host.seen.length,
    changes: host.seen.filter(({ action }) => !action.startsWith('Describe')).length,
    writesPerPod: (writes() - writesBefore) / started,
    late,
  };
  await clock.advance(REST_MS);
  const leaks = findLeaks(world);
  await world.close();
  return { ...report, leaks, wallSeconds: (performance.now() - startedMs) / 1000 };
}
