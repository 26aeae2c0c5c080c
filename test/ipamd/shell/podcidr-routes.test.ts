import test from 'ava';
import { decodeNode } from '../../../ipamd/cache/node-entry.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { addInstance, nodeOf, type ShellScene, shellScene } from './shell-scene.ts';

/** Two blocks, so that a third node has to wait for one of them. */
const FLAGS = [
  ...['--allocate-node-cidrs=true', '--cluster-cidr=192.168.0.0/25', '--node-cidr-mask-size=26'],
  ...['--gr-routes=ipamd', '--default-network=tke-bridge'],
] as const;

function cidrOf(scene: ShellScene, name: string): string {
  const node = scene.server.objects('nodes').find(({ metadata }) => metadata['name'] === name);
  // The store's objects are those of the API.
  return node === undefined ? '' : (decodeNode(node as KubeObject).podCidrs[0] ?? '');
}

function routesOf(scene: ShellScene): readonly string[] {
  return [...scene.host.model.state.globalRoutes.values()].map(({ cidr, gatewayIp }) => `${cidr} ${gatewayIp}`);
}

async function join(scene: ShellScene, name: string, ip: string): Promise<void> {
  addInstance(scene.host, `ins-shell${name}`);
  const status = { addresses: [{ type: 'InternalIP', address: ip }] };
  await scene.clock.run(scene.kube.create(NODES, { ...nodeOf(name, `ins-shell${name}`), status }));
}

test('allocator and routes of one ipamd: a freed block is given when the VPC has no route to it any more', async (t) => {
  const scene = await shellScene();
  const ipamd = await scene.start({ flags: FLAGS });
  await scene.until(() => ipamd.isLeading);
  await join(scene, 'n1', '10.0.0.11');
  await scene.until(() => routesOf(scene).length === 1);
  await join(scene, 'n2', '10.0.0.12');
  await scene.until(() => routesOf(scene).length === 2);
  t.deepEqual(routesOf(scene).toSorted(), ['192.168.0.0/26 10.0.0.11', '192.168.0.64/26 10.0.0.12']);
  // The cloud deletes no route for a while.
  const heal = scene.host.faults.add({
    fault: { kind: 'error', code: 'InternalError' },
    actions: ['DeleteGlobalRoutes'],
  });
  await scene.clock.run(scene.kube.delete(NODES, { name: 'n1' }));
  await join(scene, 'n3', '10.0.0.13');
  await scene.clock.advance(30 * 60_000);
  t.true(routesOf(scene).includes('192.168.0.0/26 10.0.0.11'));
  t.is(cidrOf(scene, 'n3'), '');
  heal();
  scene.host.model.state.instances.delete('ins-shelln1');
  await scene.until(() => !routesOf(scene).includes('192.168.0.0/26 10.0.0.11'));
  await scene.until(() => cidrOf(scene, 'n3') === '192.168.0.0/26');
  await scene.until(() => routesOf(scene).includes('192.168.0.0/26 10.0.0.13'));
  await scene.clock.run(ipamd.close());
});
