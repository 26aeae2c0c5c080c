import type { ExecutionContext } from 'ava';
import type { FlowPrograms } from '../../../dataplane/fast-path/flow-programs.ts';
import { startTraffic, type Traffic, type TrafficEnd } from '../../support/traffic.ts';
import { awaitLearned } from '../support/learned-flows.ts';
import { openWorld, type World, type WorldSpec } from './world.ts';

/** Port of the flows that `learnedTraffic` sends. */
export const PORT = 7000;
/** Packets a second. */
export const RATE = 200;

/** Runs with a world whose nodes have the fast path. */
export async function withWorld(
  run: (world: World) => Promise<void>,
  network: WorldSpec['network'] = {},
): Promise<void> {
  const world = await openWorld({ network: { ...network, fastPath: 'bpf' } });
  try {
    await run(world);
  } finally {
    await world.close();
  }
}

/** The programs of node n1. */
export function flowsOf(world: World): FlowPrograms {
  const { flows } = world.node('n1').kernel;
  if (flows === undefined) throw new Error('the node has no fast path');
  return flows;
}

/** A Pod as an end of a flow. */
export function endOf(world: World, name: string, family: 4 | 6): TrafficEnd {
  const { netns, ips } = world.pod(name);
  return { netns, ip: ips[family] };
}

/** Sends UDP between two Pods, IPv4, both ways, until the fast path of node n1 follows it. */
export async function learnedTraffic(t: ExecutionContext, world: World, from: string, to: string): Promise<Traffic> {
  const [a, b] = [endOf(world, from, 4), endOf(world, to, 4)];
  const traffic = await startTraffic(a, b, { port: PORT, rate: RATE });
  t.teardown(() => traffic.close());
  await awaitLearned(flowsOf(world), { src: a.ip, dst: b.ip, dport: PORT }, `of UDP ${from} to ${to}`);
  await awaitLearned(flowsOf(world), { src: b.ip, dst: a.ip, dport: PORT }, `of UDP ${to} to ${from}`);
  return traffic;
}
