import test from 'ava';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { nodeOf, type ShellScene, shellScene } from './shell-scene.ts';

function statusOf(scene: ShellScene, name: string): NodeEniConfigStatus {
  // Checked against its schema by the server.
  return (scene.nec(name)?.['status'] ?? {}) as NodeEniConfigStatus;
}

function enisOf(scene: ShellScene, name: string): readonly string[] {
  return (statusOf(scene, name).eniInfos ?? []).filter((eni) => eni.state === 'Attached').map((eni) => eni.eniID);
}

test('startIpamd: takes nothing from a node whose instance had another name before', async (t) => {
  const scene = await shellScene();
  const ipamd = await scene.start();
  await scene.until(() => ipamd.isLeading);
  await scene.join('old');
  await scene.until(() => enisOf(scene, 'old').length === 1);
  await scene.clock.run(scene.kube.delete(NODES, { name: 'old' }));
  await scene.clock.run(scene.kube.create(NODES, nodeOf('new', 'ins-shellold')));
  await scene.until(() => enisOf(scene, 'new').length === 1);
  const [eniID = ''] = enisOf(scene, 'new');
  const [first] = statusOf(scene, 'new').eniInfos ?? [];
  await scene.until(() => scene.nec('old') === undefined);
  await scene.clock.advance(20 * 60_000);
  t.deepEqual(enisOf(scene, 'new'), [eniID]);
  t.deepEqual(
    statusOf(scene, 'new').eniInfos?.[0]?.addresses?.map((address) => address.assignmentID),
    first?.addresses?.map((address) => address.assignmentID),
  );
  const there = [...scene.host.model.state.enis.values()].filter((eni) => eni.tags['tke-created-eni'] === 'true');
  t.deepEqual(
    there.map((eni) => eni.eniId),
    [eniID],
  );
  await scene.clock.run(ipamd.close());
});
