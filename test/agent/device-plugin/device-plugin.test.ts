import { readdirSync, rmSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import type { DeviceSupply } from '../../../agent/device-plugin/decide-devices.ts';
import {
  type DevicePlugin,
  type DevicePluginDeps,
  startDevicePlugin,
} from '../../../agent/device-plugin/device-plugin.ts';
import { createMetrics } from '../../../agent/observability/metrics.ts';
import { ChangeSignal } from '../../../runtime/change-signal.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import {
  type KubeletDeviceManager,
  type RegisterMode,
  startKubeletDeviceManager,
} from '../../support/kubelet-device-manager.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';

const ENI_IP = 'tke.cloud.tencent.com/eni-ip';
const NINE: DeviceSupply = { quota: 9, allocatable: undefined, assigned: 3, inUse: 0, stranded: 0 };

test('startDevicePlugin: tells the devices to a kubelet that was there before', async (t) => {
  const scene = openScene(t);
  const kubelet = await scene.kubelet();
  scene.plugin();
  const devices = await told(kubelet, 9);
  t.deepEqual(new Set(devices.map(({ health }) => health)), new Set(['Healthy']));
  t.is(devices[0]?.ID, 'eni-ip-0');
  const [registration] = kubelet.registrations;
  t.like(registration?.request, {
    version: 'v1beta1',
    endpoint: 'tke-eni-ip.sock',
    resource_name: ENI_IP,
    options: { pre_start_required: false, get_preferred_allocation_available: true },
  });
});

test('startDevicePlugin: waits for a kubelet, and for its folder', async (t) => {
  const scene = openScene(t);
  scene.plugin();
  await told(await scene.kubelet(), 9);
  t.pass();
});

test('startDevicePlugin: answers admissions', async (t) => {
  const scene = openScene(t);
  const kubelet = await scene.kubelet();
  scene.plugin();
  await told(kubelet, 9);
  const preferred = await kubelet.ask(ENI_IP, 'GetPreferredAllocation', {
    container_requests: [
      {
        available_deviceIDs: ['eni-ip-10', 'eni-ip-9', 'eni-ip-2'],
        must_include_deviceIDs: ['eni-ip-9'],
        allocation_size: 2,
      },
    ],
  });
  t.deepEqual(preferred, { container_responses: [{ deviceIDs: ['eni-ip-9', 'eni-ip-2'] }] });
  const allocated = await kubelet.ask(ENI_IP, 'Allocate', {
    container_requests: [{ devices_ids: ['eni-ip-2'] }, { devices_ids: ['eni-ip-3'] }],
  });
  t.is((allocated['container_responses'] as readonly unknown[]).length, 2);
});

/** A plugin and the kubelets that come and go around it. */
function openScene(t: ExecutionContext) {
  const dir = createTempDir('devices');
  const kubelets: KubeletDeviceManager[] = [];
  const plugins: DevicePlugin[] = [];
  const changed = new ChangeSignal(systemClock);
  let supply: DeviceSupply | undefined = NINE;
  t.teardown(async () => {
    await Promise.all(plugins.map((plugin) => plugin.close()));
    await Promise.all(kubelets.map((kubelet) => kubelet.kill()));
    dir.close();
  });
  return {
    dir,
    kubelet: async (mode?: RegisterMode): Promise<KubeletDeviceManager> => {
      const kubelet = await startKubeletDeviceManager(dir.join('kubelet'), mode);
      kubelets.push(kubelet);
      return kubelet;
    },
    plugin: (more: Partial<DevicePluginDeps> = {}): DevicePlugin => {
      const plugin = startDevicePlugin({
        ...{ clock: systemClock, log: silentLogger, random: Math.random, changes: [changed], node: undefined },
        kubeletDir: dir.join('kubelet'),
        resources: [{ name: ENI_IP, prefix: 'eni-ip', socketName: 'tke-eni-ip.sock', count: () => supply }],
        metrics: createMetrics({ processMetrics: false }),
        events: { tell: () => {} },
        ...more,
      });
      plugins.push(plugin);
      return plugin;
    },
    supply: (next: DeviceSupply | undefined) => {
      supply = next;
      changed.notify();
    },
    sockets: () => readdirSync(dir.join('kubelet', 'device-plugins')),
    remove: (...names: readonly string[]) => rmSync(dir.join('kubelet', ...names), { recursive: true, force: true }),
  };
}

async function told(kubelet: KubeletDeviceManager, total: number) {
  return await waitUntil(
    () => {
      const devices = kubelet.devices(ENI_IP);
      return devices?.length === total ? devices : undefined;
    },
    { what: `${total} devices`, explain: () => `${kubelet.registrations.length} registrations` },
  );
}
