import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { NODE_ANNOTATION } from '../../crd/names.ts';
import { NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { DIST_BIN_DIR } from '../support/executables.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';
import { FORWARDING, snapshot, uninstallArgv } from './support/leaving.ts';

const WARM = 5;
const PODS_EACH = 7;

let system: System;

test.before(async () => {
  system = await createSystem({
    nodes: [{ name: 'n1' }, { name: 'n2' }],
    joinsAll: false,
    agentFlags: { 'plugin-dir': DIST_BIN_DIR },
  });
});
test.after.always(() => system?.close());

function secondaryEnis(): number {
  return [...system.cloud.host.model.state.enis.values()].filter((eni) => !eni.isPrimary).length;
}

// The order of docs/uninstall.md.
test('leaving a cluster: in the documented order nothing is left in the cloud, in the cluster or on a node', async (t) => {
  t.timeout(180_000);
  const before = new Map<string, unknown>();
  for (const { name, scene } of system.nodes) {
    await scene.netns.sysctl({ 'net/ipv4/conf/eth0/rp_filter': 1, ...FORWARDING });
    before.set(name, await snapshot(scene.netns));
    await system.join(name);
  }
  for (const node of system.nodes) {
    await system.awaitNec(node.name, 'warm', (nec) => countAssigned(nec) >= WARM);
    const names = Array.from({ length: PODS_EACH }, (_, at) => `${node.name}-p${at}`);
    await Promise.all(names.map((name) => node.runPod(name)));
    await Promise.all(names.map((name) => node.removePod(name)));
  }
  t.true(secondaryEnis() >= 2);

  // Agents run on: it is they who say that the addresses are free.
  for (const { name } of system.nodes) await system.annotateNode(name, { [NODE_ANNOTATION.disableEni]: 'true' });
  for (const { name } of system.nodes) await system.cluster.admin.delete(NODE_ENI_CONFIGS, { name });
  for (const { name } of system.nodes) await system.awaitGone(name, 60_000);
  t.is(secondaryEnis(), 0, 'the cloud has every ENI back');

  await Promise.all(system.ipamds.map((ipamd) => ipamd.kill()));
  for (const { name, scene } of system.nodes) {
    await scene.agent.stop();
    const { code, stdout, stderr } = await scene.netns.tryRun(uninstallArgv(scene), { env: childEnv() });
    t.is(code, 0, stdout + stderr);
    t.deepEqual(await snapshot(scene.netns), before.get(name), `${name} as it was before it joined`);
    t.false(existsSync(join(scene.dir, 'state')));
    t.deepEqual(readdirSync(join(scene.dir, 'cni-bin')), []);
    t.deepEqual(readdirSync(join(scene.dir, 'cni-conf')), []);
    t.is(await system.nec(name), undefined, 'none was made again');
  }
});
