import test from 'ava';
import { type MigrationNode, ON_BRIDGE, openMigrationNode } from './support/migration-node.ts';
import { HAS_REFERENCE_PLUGINS, type ProductPod } from './support/product-bridge.ts';
import type { ScenePod } from './support/scene-node.ts';

// Pods of the CNI project's plugins bridge and host-local, as the product has them, are taken over, and the node goes back,
// while numbered packets and connections run both ways.

const takesOver = HAS_REFERENCE_PLUGINS ? test : test.skip;

/** A Pod of the product as the runtime calls our executable for it. */
function sceneOf({ node }: MigrationNode, { containerId, netns }: ProductPod, name: string): ScenePod {
  const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${name}`;
  return { node, netns, containerId, ifName: 'eth0', namespace: 'default', name, args } as ScenePod;
}

takesOver('agent: takes over Pods of bridge and host-local; they keep address, gateway and connections', async (t) => {
  t.timeout(120_000);
  const scene = await openMigrationNode(t, 'compact');
  const { node, product } = scene;
  const [first, second] = [await scene.addOld('old-0'), await scene.addOld('old-1')];
  const before = await first.netns.ip('addr', 'show', 'dev', 'eth0');
  await Promise.all([
    scene.stream('two old Pods', first, second),
    scene.stream('an old Pod and another node', second, scene.other),
  ]);
  await node.startAgent({ flags: ON_BRIDGE });
  const young = await scene.addYoung('young-0');
  t.true(await young.netns.ping(first.ip));
  t.is(await first.netns.ip('addr', 'show', 'dev', 'eth0'), before);
  t.deepEqual(product.reservations(), {
    [first.ip]: first.containerId,
    [second.ip]: second.containerId,
    [young.ip]: young.containerId,
  });
  const conf = node.conf({ prevResult: first.result });
  const checked = await node.call('CHECK', sceneOf(scene, first, 'old-0'), { conf });
  t.is(checked.exitCode, 0, checked.stdout);
  t.deepEqual(await scene.losses(), []);

  t.is((await node.call('DEL', sceneOf(scene, first, 'old-0'))).exitCode, 0);
  t.deepEqual(Object.keys(product.reservations()), [second.ip, young.ip]);
  t.deepEqual(await first.netns.ipJson('addr', 'show', 'dev', 'eth0').catch(() => []), []);
  t.true(await young.netns.ping(second.ip));
});
