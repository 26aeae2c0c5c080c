import { setTimeout as sleep } from 'node:timers/promises';
import type { TestFn } from 'ava';
import { NODE_ENI_CONFIG_ANNOTATION } from '../../../crd/names.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { auditThreeWays } from '../../system/audit-three-ways.ts';
import { type HeldCall, type HoldAt, holdCalls } from '../../system/hold.ts';
import { countAssigned, createSystem, type System } from '../../system/system.ts';

/** Each node is at another kind of change when the leader dies. */
const CALLS = [
  { action: 'CreateNetworkInterface', node: 'create' },
  { action: 'AttachNetworkInterface', node: 'attach' },
  { action: 'AssignPrivateIpAddresses', node: 'assign' },
  { action: 'UnassignPrivateIpAddresses', node: 'unassign' },
  { action: 'DetachNetworkInterface', node: 'detach' },
  { action: 'DeleteNetworkInterface', node: 'delete' },
] as const satisfies readonly HeldCall[];

const EARLY = ['assign', 'unassign', 'detach', 'delete'] as const;
const WARM = 7;
/** Longer than it takes until all are caught: ipamd itself gives up calls that hang. */
const FLAGS = { 'cloud-timeout': '10s' };

/**
 * Registers the test that kills the leader while the cloud holds one call of each kind, each for a node of its own, and
 * has the other replica take over.
 */
export function tryKillingTheLeader(test: TestFn, at: HoldAt): void {
  let system: System;
  test.before(async () => {
    system = await createSystem({
      nodes: CALLS.map(({ node }) => ({ name: node })),
      joinsAll: false,
      ipamdFlags: FLAGS,
    });
    await Promise.all(EARLY.map((name) => system.join(name)));
    for (const name of EARLY) await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= 5);
    await setWarm(system, 'unassign', WARM);
    await system.awaitNec('unassign', `${WARM} addresses`, (nec) => countAssigned(nec) >= WARM);
  });
  test.after.always(() => system?.close());

  test(`the leader is killed at every kind of change (${at}): the next one loses and doubles nothing`, async (t) => {
    const hold = holdCalls(system, CALLS, at);
    await provoke(system);
    await hold.caught();
    const leader = await system.leader();
    await leader.kill();
    // Within lease and request timeout a call that is under way may still take its effect.
    await sleep(at === 'before-late' ? LATE_MS : 0);
    hold.release();
    const next = await system.leader();
    t.not(next.name, leader.name);
    leader.start();
    for (const name of ['create', 'attach'])
      await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= 5, 60_000);
    await system.awaitNec('assign', `${WARM} addresses`, (nec) => countAssigned(nec) >= WARM);
    await system.awaitNec('unassign', 'fewer addresses', (nec) => countAssigned(nec) < WARM);
    await system.awaitGone('detach');
    await system.awaitGone('delete');
    t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
  });
}

const LATE_MS = 3_000;

async function setWarm(system: System, node: string, count: number): Promise<void> {
  const { routeMinWarm, routeMaxWarm } = NODE_ENI_CONFIG_ANNOTATION;
  const annotations = { [routeMinWarm]: String(count), [routeMaxWarm]: String(count) };
  await system.patchNec(node, { metadata: { annotations } });
}

/** Does on each node what leads to its call. */
async function provoke(system: System): Promise<void> {
  await Promise.all([system.join('create'), system.join('attach')]);
  await setWarm(system, 'assign', WARM);
  // What is beyond a node's limit is given back at once, not at the pace of other surplus.
  const { maxIpPerEni, routeMaxAttach } = NODE_ENI_CONFIG_ANNOTATION;
  const limit = { [maxIpPerEni]: String(WARM - 2), [routeMaxAttach]: '1' };
  await system.patchNec('unassign', { metadata: { annotations: limit } });
  for (const name of ['detach', 'delete']) await system.cluster.admin.delete(NODES, { name });
}
