import test, { type ExecutionContext } from 'ava';
import { readAgentConfig } from '../../../agent/config/agent-config.ts';
import type { DevicePlugin } from '../../../agent/device-plugin/device-plugin.ts';
import { openKubelet } from '../../../agent/device-plugin/kubelet.ts';
import { NO_EVENTS } from '../../../agent/events/node-events.ts';
import { openDevicePlugin } from '../../../agent/join-cluster.ts';
import { createMetrics } from '../../../agent/observability/metrics.ts';
import { DIRECT_ENI_RESOURCE } from '../../../crd/names.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { startKubeletDeviceManager } from '../../support/kubelet-device-manager.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { type AgentLife, eniOf, leaseTo, openClusterScene } from '../cluster/cluster-scene.ts';
import { told } from './plugin-scene.ts';

test('openDevicePlugin: follows the NodeENIConfig, goes by the journal when no API server answers, and can be off', async (t) => {
  const scene = await openClusterScene();
  const dir = createTempDir('agent-devices');
  const kubelet = await startKubeletDeviceManager(dir.path);
  t.teardown(async () => {
    await kubelet.kill();
    scene.close();
    dir.close();
  });
  await scene.edit((object) => ({ ...object, spec: { maxRouteENI: 3, maxIPPerENI: 9 } }));
  const agent = scene.startAgent();
  const plugin = pluginOf(t, agent, dir.path);
  await scene.pass();
  await told(kubelet, 27);
  await scene.supply((status) => ({
    ...status,
    eniInfos: [eniOf('a', [10, 11, 12])],
    allocatableRouteENIIPs: 4,
  }));
  await scene.pass();
  await told(kubelet, 4);
  for (const name of ['p1', 'p2', 'p3']) t.truthy(leaseTo(agent, name, scene.clock.bootMs()));
  await scene.supply((status) => ({ ...status, allocatableRouteENIIPs: 2 }));
  await scene.pass();
  await told(kubelet, 3);

  await plugin?.close();
  agent.kill();
  scene.api.partition();
  const next = scene.startAgent();
  await scene.pass();
  t.is(next.cluster.supply.latest(), undefined);
  pluginOf(t, next, dir.path);
  await told(kubelet, 3);
});

test('openDevicePlugin: offers exclusive ENIs once the node serves them, and none when it does so no more', async (t) => {
  const scene = await openClusterScene();
  const dir = createTempDir('agent-devices');
  const kubelet = await startKubeletDeviceManager(dir.path);
  t.teardown(async () => {
    await kubelet.kill();
    scene.close();
    dir.close();
  });
  const limits = { maxRouteENI: 3, maxIPPerENI: 9 };
  await scene.edit((object) => ({ ...object, spec: limits }));
  const agent = scene.startAgent();
  pluginOf(t, agent, dir.path);
  await scene.pass();
  await told(kubelet, 27);
  t.is(kubelet.devices(DIRECT_ENI_RESOURCE), undefined, 'a node that serves none has no such resource');
  await scene.edit((object) => ({ ...object, spec: { ...limits, maxDirectENI: 2 } }));
  await scene.pass();
  await told(kubelet, 2, DIRECT_ENI_RESOURCE);
  await scene.edit((object) => ({ ...object, spec: limits }));
  await scene.pass();
  await told(kubelet, 0, DIRECT_ENI_RESOURCE);
});

const RUNTIME = {
  background: runInBackground,
  clock: systemClock,
  log: silentLogger,
  random: seededRandom(1),
  events: NO_EVENTS,
};

function pluginOf(t: ExecutionContext, { state, cluster }: AgentLife, folder: string): DevicePlugin | undefined {
  const metrics = createMetrics();
  const parts = { ...RUNTIME, config: configOf(), state, metrics };
  t.is(openDevicePlugin({ ...parts, host: { kubelet: undefined } }, cluster), undefined);
  const plugin = openDevicePlugin({ ...parts, host: { kubelet: openKubelet(folder) } }, cluster);
  t.teardown(async () => await plugin?.close());
  return plugin;
}

function configOf() {
  const argv = ['--supply-source=cluster', '--node-name=n1'];
  const outcome = readAgentConfig({ argv, env: {}, readFile: () => '' });
  if (outcome.kind !== 'run') throw new Error('settings of the test are wrong');
  return outcome.config;
}
