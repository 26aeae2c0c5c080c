import { IDS_PER_CALL } from '../../../cloud/batches.ts';
import type { RouteKind } from '../../../cloud/cloud.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { RouteWorld } from './route-world.ts';

/** What the routes of many Nodes cost. */
type RoutesReport = {
  /** Calls to the cloud until each of the Nodes had its route. */
  readonly calls: number;
  /** The fewest: one list of what is there, and as many routes a call as the API takes. */
  readonly fewest: number;
  /** Calls of an hour in which nothing changes. */
  readonly quietCalls: number;
  /** Virtual seconds until each had its route, and its condition said so. */
  readonly seconds: number;
};

const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;
const MAX_MS = 600 * SECOND_MS;
const FLAGS: Readonly<Record<RouteKind, readonly string[]>> = {
  global: ['--routes=global'],
  table: ['--routes=table', '--route-tables=rtb-test0001'],
  cluster: ['--routes=cluster'],
};

/** Counts the calls for `count` Nodes that are there when the route controller starts, at most 1,000. */
export async function measureRoutes(kind: RouteKind, count: number): Promise<RoutesReport> {
  const world = await RouteWorld.start('--controllers=node-route-controller', ...FLAGS[kind]);
  const { host, clock, admin, server } = world.world.scene;
  await world.world.stop();
  host.model.state.routeTables.quota = count;
  for (let index = 0; index < count; index++) {
    const name = `n${index}`;
    const address = `10.0.${Math.floor(index / 250)}.${(index % 250) + 2}`;
    const podCIDR = `172.16.${Math.floor(index / 4)}.${(index % 4) * 64}/26`;
    const status = { addresses: [{ type: 'InternalIP', address }], conditions: [{ type: 'Ready', status: 'True' }] };
    void admin.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: { podCIDR }, status });
  }
  await clock.advance(SECOND_MS);
  if (server.objects('nodes').length !== count) throw new Error('not all Nodes were created');
  host.forget();
  const startMs = clock.nowMs();
  await world.replace();
  const isDone = (): boolean =>
    server.objects('nodes').every(({ metadata }) => world.networkOf(String(metadata.name)) === 'False RouteCreated');
  while (world.routes().length < count || !isDone()) {
    if (clock.nowMs() - startMs > MAX_MS) throw new Error(`${world.routes().length} of ${count} routes in time`);
    await world.advance(SECOND_MS);
  }
  const [calls, seconds] = [host.seen.length, (clock.nowMs() - startMs) / SECOND_MS];
  host.forget();
  await world.advance(HOUR_MS);
  const quietCalls = host.seen.length;
  await world.stop();
  const perCall = kind === 'cluster' ? 1 : IDS_PER_CALL;
  return { calls, fewest: 1 + Math.ceil(count / perCall), quietCalls, seconds };
}
