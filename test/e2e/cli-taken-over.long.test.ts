import test from 'ava';
import { buildExecutables } from '../../tools/build.ts';
import { ON_BRIDGE, openMigrationNode } from './support/migration-node.ts';
import { HAS_REFERENCE_PLUGINS } from './support/product-bridge.ts';
import { askCli, listOf, runCli } from './support/run-cli.ts';

// What tke-eni says of a node whose Pods of bridge and host-local were taken over: they are Pods as all others.

const takenOver = HAS_REFERENCE_PLUGINS ? test.serial : test.serial.skip;

for (const ruleMode of ['compact', 'per-pod'] as const) {
  takenOver(`tke-eni: Pods that were taken over, ${ruleMode}`, async (t) => {
    t.timeout(120_000);
    await buildExecutables(['tke-eni']);
    const scene = await openMigrationNode(t, ruleMode);
    const old = await scene.addOld('old-0');
    await scene.node.startAgent({ flags: ON_BRIDGE });
    const young = await scene.addYoung('young-0');
    const { netns, agent } = scene.node;
    const place = { netns, stateDir: agent.stateDir, socketPath: agent.socketPath };
    for (const [from, to] of [
      [old, young],
      [young, old],
    ] as const) {
      t.true(await from.netns.ping(to.ip));
      const { code, stdout } = await runCli(place, 'explain', from.ip, '--to', to.ip);
      t.is(code, 0, stdout);
      t.regex(stdout, /bridge cbr0, from port \S+ to port \S+/);
    }
    const diff = await runCli(place, 'diff');
    t.is(diff.code, 0, diff.stdout);
    const doctor = await askCli(place, 'doctor', '--only', 'pod-cidr,bridge-ports,masquerade,differences,pod-links');
    t.deepEqual(listOf(doctor.document, 'findings'), [], JSON.stringify(doctor.document));
    const pods = JSON.parse((await runCli(place, 'pods', '-o', 'json')).stdout);
    t.deepEqual(
      pods.map(({ pod, network }: Readonly<Record<string, unknown>>) => `${pod} ${network}`),
      ['old-0 tke-bridge', 'young-0 tke-bridge'],
    );
    const [block] = listOf((await askCli(place, 'pool')).document, 'blocks');
    t.like(block, { cidr: '192.168.0.64/26', inUse: 2, held: 0, free: 59 });
  });
}
