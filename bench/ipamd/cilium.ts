import { readCiliumNode } from '../../crd/cilium-node.ts';
import { CILIUM_NODES, CUSTOM_RESOURCE_DEFINITIONS } from '../../kube/resource-types.ts';
import { CILIUM_NODE_DEFINITION } from '../../test/support/cilium-node-definition.ts';
import { findLeaks } from './find-leaks.ts';
import { fewestCalls } from './lower-bound.ts';
import { createWorld, joinNodes, until } from './world.ts';

/** What the pools of a cluster of Cilium took. */
type CiliumReport = {
  readonly nodes: number;
  readonly seconds: number;
  /** Calls that change something, for a node, and the fewest possible. */
  readonly changesPerNode: number;
  readonly fewestPerNode: number;
  /** Writes for a node. */
  readonly poolWritesPerNode: number;
  readonly necWritesPerNode: number;
  readonly leaks: readonly string[];
  readonly wallSeconds: number;
};

const ADDRESSES = 30;
const LIMITS = { ipsPerEni: 19, enisPerNode: 5 } as const;
const CHANGES = ['CreateNetworkInterface', 'AttachNetworkInterface', 'AssignPrivateIpAddresses'];
const MOST_VIRTUAL_MS = 6 * 3_600_000;

/** Lets nodes of 8 cores join at once, whose CiliumNodes want thirty addresses each, and measures until all have them. */
export async function measureCiliumPools(nodes: number): Promise<CiliumReport> {
  const startedMs = performance.now();
  const world = await createWorld({ nodes, cores: 8, cooldownMs: 120_000, isQuick: false, isCilium: true });
  const { clock, host, api } = world;
  const admin = api.client();
  await clock.run(admin.create(CUSTOM_RESOURCE_DEFINITIONS, CILIUM_NODE_DEFINITION));
  host.forget();
  const beganMs = clock.monotonicMs();
  await joinNodes(world);
  const spec = { ipam: { 'min-allocate': ADDRESSES } };
  const made = world.nodes.map(({ metadata: { name } }) =>
    admin.create(CILIUM_NODES, { apiVersion: 'cilium.io/v2', kind: 'CiliumNode', metadata: { name }, spec }),
  );
  await clock.run(Promise.all(made));
  const areFull = (): boolean =>
    api.objects('ciliumnodes', 'cilium.io').every((object) => readCiliumNode(object).ipam.pool.size >= ADDRESSES);
  await clock.run(until(clock, areFull), MOST_VIRTUAL_MS);
  const seconds = (clock.monotonicMs() - beganMs) / 1_000;
  // Whatever else would be written is written by then.
  await clock.advance(120_000);
  const counts = host.counts();
  const { create, attach, assign } = fewestCalls({ ipsPerNode: ADDRESSES, ...LIMITS });
  const report = {
    nodes,
    seconds,
    changesPerNode: CHANGES.reduce((sum, action) => sum + (counts[action] ?? 0), 0) / nodes,
    fewestPerNode: create + attach + assign,
    poolWritesPerNode: world.ipamdWrites('ciliumnodes') / nodes,
    necWritesPerNode: world.ipamdWrites('nodeeniconfigs') / nodes,
    leaks: findLeaks(world),
  };
  await world.close();
  return { ...report, wallSeconds: (performance.now() - startedMs) / 1_000 };
}
