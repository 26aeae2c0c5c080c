import { setTimeout as sleep } from 'node:timers/promises';
import { Child } from '../sim/support/child.ts';
import { startKubeletDeviceManager } from '../test/support/kubelet-device-manager.ts';
import { createTempDir } from '../test/support/temp-dir.ts';
import { waitUntil } from '../test/support/wait-until.ts';
import { type BenchRow, benchRow, median } from './row.ts';

const RESTARTS = 200;
const BOUND_MS = 1_000;
const DEVICES = 110;
const ENI_IP = 'tke.cloud.tencent.com/eni-ip';
/** As long as a kubelet needs at least to come up again. */
const DOWN_MS = 100;

/**
 * Measures how soon the device plugin is back after kubelet was restarted: from the moment at which kubelet's new socket
 * is there until its registration was answered and its devices are told. Until then kubelet refuses Pods. The bound is 1 s.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const dir = createTempDir('bench-devices');
  const program = new URL('../test/agent/device-plugin/plugin-process.ts', import.meta.url).pathname;
  const plugin = new Child([process.execPath, program, dir.path, String(DEVICES)]);
  try {
    const backMs: number[] = [];
    const registeredMs: number[] = [];
    await restart(dir.path);
    for (let round = 0; round < RESTARTS; round++) {
      const { toldMs, requestMs } = await restart(dir.path);
      backMs.push(toldMs);
      registeredMs.push(requestMs);
    }
    const late = backMs.filter((ms) => ms > BOUND_MS).length;
    const common = { suite: 'device-plugin', peerName: 'bound', peer: BOUND_MS, unit: 'ms' } as const;
    return [
      benchRow({
        ...common,
        case: 'reregister',
        ours: median(backMs),
        extra:
          `${RESTARTS} restarts of kubelet, ${DEVICES} devices: registered and devices told; max ${Math.max(...backMs).toFixed(0)} ms, ` +
          `${late} above ${BOUND_MS} ms; Register alone: median ${median(registeredMs).toFixed(0)} ms`,
      }),
      benchRow({ ...common, case: 'reregister-max', ours: Math.max(...backMs), extra: `slowest of ${RESTARTS}` }),
    ];
  } finally {
    await plugin.stop();
    dir.close();
  }
}

/** Starts a kubelet, waits until it knows the devices, and kills it. */
async function restart(folder: string): Promise<{ readonly toldMs: number; readonly requestMs: number }> {
  const kubelet = await startKubeletDeviceManager(folder);
  const startedMs = performance.now();
  await waitUntil(() => kubelet.devices(ENI_IP)?.length === DEVICES, {
    what: 'devices',
    everyMs: 1,
    timeoutMs: 60_000,
  });
  const toldMs = performance.now() - startedMs;
  const requestMs = (kubelet.registrations.at(-1)?.atMs ?? Number.NaN) - startedMs;
  await kubelet.kill();
  await sleep(DOWN_MS);
  return { toldMs, requestMs };
}
