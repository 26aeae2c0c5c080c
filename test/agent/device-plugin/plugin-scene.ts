import { readdirSync, rmSync } from 'node:fs';
import type { ExecutionContext } from 'ava';
import type { DeviceSupply } from '../../../agent/device-plugin/decide-devices.ts';
import {
  type DevicePlugin,
  type DevicePluginDeps,
  startDevicePlugin,
} from '../../../agent/device-plugin/device-plugin.ts';
import { openKubelet } from '../../../agent/device-plugin/kubelet.ts';
import { createMetrics } from '../../../agent/observability/metrics.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { ChangeSignal } from '../../../runtime/change-signal.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import {
  type KubeletDeviceManager,
  type RegisterMode,
  startKubeletDeviceManager,
  type ToldDevice,
} from '../../support/kubelet-device-manager.ts';
import { createTempDir, type TempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';

/** The resource of the scene. */
export const ENI_IP = 'tke.cloud.tencent.com/eni-ip';

const NINE: DeviceSupply = { quota: 9, allocatable: undefined, assigned: 3, inUse: 0, stranded: 0 };

/** A plugin and the kubelets that come and go around it, in a folder of its own. */
type PluginScene = {
  readonly dir: TempDir;
  kubelet(mode?: RegisterMode, isOld?: boolean): Promise<KubeletDeviceManager>;
  plugin(more?: Partial<DevicePluginDeps>): DevicePlugin;
  /** Says what the node may have; the plugin is woken. */
  supply(change: Partial<DeviceSupply> | undefined): void;
  /** Names in the folder of the sockets. */
  sockets(): readonly string[];
  remove(...names: readonly string[]): void;
  /** The agent's metrics as a scrape gets them. */
  metrics(): Promise<string>;
};

/** Opens a scene; it ends with the test. */
export function openScene(t: ExecutionContext): PluginScene {
  const dir = createTempDir('devices');
  const kubelets: KubeletDeviceManager[] = [];
  const plugins: DevicePlugin[] = [];
  const metrics = createMetrics();
  const changed = new ChangeSignal(systemClock);
  let supply: DeviceSupply | undefined = NINE;
  t.teardown(async () => {
    await Promise.all(plugins.map((plugin) => plugin.close()));
    await Promise.all(kubelets.map((kubelet) => kubelet.kill()));
    dir.close();
  });
  return {
    dir,
    kubelet: async (mode, isOld) => {
      const kubelet = await startKubeletDeviceManager(dir.join('kubelet'), { mode, isOld });
      kubelets.push(kubelet);
      return kubelet;
    },
    plugin: (more = {}) => {
      const plugin = startDevicePlugin({
        ...{ clock: systemClock, log: silentLogger, random: seededRandom(1), changes: [changed], node: undefined },
        kubelet: openKubelet(dir.join('kubelet')),
        resources: [{ name: ENI_IP, prefix: 'eni-ip', socketName: 'tke-eni-ip.sock', count: () => supply }],
        background: runInBackground,
        metrics,
        events: { report: () => {} },
        ...more,
      });
      plugins.push(plugin);
      return plugin;
    },
    supply: (change) => {
      supply = change === undefined ? undefined : { ...NINE, ...change };
      changed.notify();
    },
    sockets: () => readdirSync(dir.join('kubelet', 'device-plugins')),
    remove: (...names: readonly string[]) => rmSync(dir.join('kubelet', ...names), { recursive: true, force: true }),
    metrics: () => metrics.registry.metrics(),
  };
}

/** Waits until a kubelet was told of that many devices. */
export async function told(
  kubelet: KubeletDeviceManager,
  total: number,
  resource: string = ENI_IP,
): Promise<readonly ToldDevice[]> {
  return await waitUntil(
    () => {
      const devices = kubelet.devices(resource);
      return devices?.length === total ? devices : undefined;
    },
    { what: `${total} devices`, timeoutMs: 60_000, explain: () => `${kubelet.registrations.length} registrations` },
  );
}
