import { tryFlowtable } from '../../agent/fast-path/open-fast-path.ts';
import { removeKernelState } from '../../agent/uninstall/remove-kernel-state.ts';
import { Sweep } from '../../agent/uninstall/sweep.ts';
import { diffHost } from '../../dataplane/diff.ts';
import { observeHost } from '../../dataplane/observe.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { ifKnown } from '../../inspection/node/known.ts';
import { readNftFacts } from '../../inspection/node/read-nft-facts.ts';
import { silentLogger } from '../../runtime/log.ts';
import { withTestNode } from '../kernel/dataplane/test-node.ts';
import { followScene } from './follow-scene.ts';
import { type GuestWorld, openGuestWorld } from './guest-world.ts';
import { kindsScene } from './kinds-scene.ts';
import { linksScene } from './links-scene.ts';
import { offScene } from './off-scene.ts';
import { rateScene } from './rate-scene.ts';
import { report, summary } from './report.ts';

// Runs in a guest whose kernel has flowtables: what flows of a Pod to hosts outside of its node do in ours.

await withTestNode(async (node) => {
  report('try', (await tryFlowtable(node.kernel)) ?? '');
  const world = await openGuestWorld(node, 'compact');
  report('first', summary(await node.reach(world.plan())));
  report('second', diffHost(world.plan(), await observeHost(node.kernel, world.plan())).operations);
  const facts = ifKnown(await readNftFacts({ netnsPath: node.netns.path }));
  report('links', {
    read: facts?.flowLinks,
    planned: world
      .plan()
      .flowtable?.devices.map(({ ifname }) => ifname)
      .sort(),
  });
  const flow = await followScene(world);
  await kindsScene(world);
  await offScene(world);
  await rateScene(world);
  await linksScene(world, flow);
  await removalScene(world);
});

await withTestNode(async (node) => {
  const world = await openGuestWorld(node, 'per-pod');
  await node.reach(world.plan());
  await kindsScene(world);
});

/** Off, and the end of everything of ours, leave no table. */
async function removalScene({ node, network, other, plan }: GuestWorld): Promise<void> {
  const tables = () => node.run('nft', 'list', 'tables');
  const { fastPath: _, ...without } = network;
  const off = planNode(without, node.enis, [other.network]);
  report('off', { operations: summary(await node.reach(off)), tables: tables() });
  await node.reach(plan([other]));
  const before = tables();
  const journal = { leases: [], cooldowns: [], enis: [] };
  const sweep = new Sweep(silentLogger);
  await removeKernelState(node.kernel, { journal, evidence: { veths: [], enis: [], ipams: [], blocks: [] } }, sweep);
  report('uninstalled', { before, tables: tables(), hasFailed: sweep.hasFailed() });
}
